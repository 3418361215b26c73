// A receive that nobody answers, cancelled after a while.
#include "state.h"

int main(void) {
    start();
    int in = -7, flag;
    MPI_Request request, other;
    MPI_Status status;
    MPI_Irecv(&in, 1, MPI_INT, before, 777, MPI_COMM_WORLD, &request);
    MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, 778, MPI_COMM_WORLD, &other);
    for (int i = 0; i < 4; i++) beat();
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &flag);
    CHECK(flag && request == MPI_REQUEST_NULL);
    for (int i = 0; i < 4; i++) beat();
    MPI_Cancel(&other);
    MPI_Wait(&other, &status);
    MPI_Test_cancelled(&status, &flag);
    CHECK(flag && in == -7);
    beat();
    say("cancelled");
    return done("cancel_receive");
}
