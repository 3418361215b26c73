// A communicator in the making: Idup started, others communicate, Idup complete.
#include "state.h"

int main(void) {
    start();
    MPI_Comm copies[2];
    MPI_Request requests[2];
    MPI_Comm_idup(MPI_COMM_WORLD, &copies[0], &requests[0]);
    for (int i = 0; i < 3; i++) beat();
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    ring(copies[0]);
    MPI_Comm_idup(copies[0], &copies[1], &requests[1]);
    // No library is asked to allow it, and all do: mpi4py sets a handler on each one at once.
    MPI_Comm_set_errhandler(copies[1], MPI_ERRORS_RETURN);
    for (int i = 0; i < 2; i++) ring(copies[0]);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    MPI_Comm_free(&copies[0]);
    for (int i = 0; i < 3; i++) ring(copies[1]);
    CHECK(total(copies[1], 1) == size);
    MPI_Errhandler handler;
    MPI_Comm_get_errhandler(copies[1], &handler);
    CHECK(handler == MPI_ERRORS_RETURN);
    // The first rank asks last, after a message that the others send only when they have asked.
    MPI_Comm late;
    if (rank == 0) {
        for (int from = 1; from < size; from++) MPI_Recv(NULL, 0, MPI_INT, from, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Comm_idup(copies[1], &late, &requests[0]);
    } else {
        MPI_Comm_idup(copies[1], &late, &requests[0]);
        MPI_Send(NULL, 0, MPI_INT, 0, 9, MPI_COMM_WORLD);
    }
    int done_now = 0;
    while (!done_now) MPI_Test(&requests[0], &done_now, MPI_STATUS_IGNORE);
    CHECK(total(late, 2) == 2 * size);
    ring(late);
    MPI_Comm_free(&late);
    MPI_Comm_free(&copies[1]);
    say("three copies");
    return done("comm_idup");
}
