// Nonblocking collectives between the two groups of an intercommunicator, pending and complete.
// ranks: 4
#include "state.h"

int main(void) {
    start();
    MPI_Comm half, inter;
    MPI_Request requests[3];
    int side = rank % 2, value, sum, root;
    MPI_Comm_split(MPI_COMM_WORLD, side, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - side, 34, &inter);
    for (int i = 0; i < 4; i++) {
        // From the first rank of one side to all of the other. (MPICH 4.0 loses a broadcast of another rank.)
        value = side == i % 2 ? 100 * i + rank : -1;
        root = side != i % 2 ? 0 : rank < 2 ? MPI_ROOT : MPI_PROC_NULL;
        MPI_Ibcast(&value, 1, MPI_INT, root, inter, &requests[0]);
        MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, inter, &requests[1]);
        beat();
        MPI_Ibarrier(inter, &requests[2]);
        MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
        CHECK(value == 100 * i + (side == i % 2 ? rank : i % 2) && sum == (side ? 2 : 4));
        beat();
    }
    MPI_Comm_free(&inter), MPI_Comm_free(&half);
    beat();
    say("sum %d", sum);
    return done("intercomm_coll");
}
