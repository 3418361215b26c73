// Communicators of one rank alone, and what is in flight in them.
#include "state.h"

int main(void) {
    start();
    MPI_Comm mine, split;
    int in = -1, n;
    MPI_Request request;
    MPI_Comm_dup(MPI_COMM_SELF, &mine);
    MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &split);
    MPI_Isend(&rank, 1, MPI_INT, 0, 4, mine, &request);
    for (int i = 0; i < 3; i++) beat();
    CHECK(total(split, rank) == rank && total(MPI_COMM_SELF, 5) == 5);
    MPI_Recv(&in, 1, MPI_INT, 0, 4, mine, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(in == rank);
    MPI_Comm_size(split, &n);
    CHECK(n == 1);
    for (int i = 0; i < 3; i++) ring(split);
    MPI_Comm_free(&mine);
    MPI_Comm_free(&split);
    beat();
    say("alone %d", in);
    return done("comm_self");
}
