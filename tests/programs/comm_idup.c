// A communicator in the making: Idup started, others communicate, Idup complete.
// refuses: nonblocking, collective, idup
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
    for (int i = 0; i < 2; i++) ring(copies[0]);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    MPI_Comm_free(&copies[0]);
    for (int i = 0; i < 3; i++) ring(copies[1]);
    CHECK(total(copies[1], 1) == size);
    MPI_Comm_free(&copies[1]);
    say("two copies");
    return done("comm_idup");
}
