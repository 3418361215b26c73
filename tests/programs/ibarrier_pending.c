// A barrier that one rank enters long after the others.
// refuses: nonblocking, collective
#include "state.h"

int main(void) {
    start();
    int flag = 0;
    MPI_Request request;
    for (int turn = 0; turn < 3; turn++) {
        if (rank != 1) MPI_Ibarrier(MPI_COMM_WORLD, &request);
        for (int i = 0; i < 2; i++) beat();
        if (rank != 1) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        CHECK(!flag);
        MPI_Sendrecv(&turn, 1, MPI_INT, after, 0, &flag, 1, MPI_INT, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(flag == turn);
        flag = 0;
        if (rank == 1) MPI_Ibarrier(MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        beat();
    }
    say("three");
    return done("ibarrier_pending");
}
