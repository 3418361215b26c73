// Persistent collectives, started again and again and inactive or under way at cuts.
// mpi: 4
#include "state.h"

static void sum(void *in, void *inout, int *n, MPI_Datatype *type) {
    (void)type;
    for (int i = 0; i < *n; i++) ((int *)inout)[i] += ((int *)in)[i];
}

enum { KINDS = 6 };

int main(void) {
    start();
    int *gathered = calloc(size, sizeof(int)), *to = calloc(size, sizeof(int)), *from = calloc(size, sizeof(int));
    int root, one, all, prefix = 0, own, least;
    MPI_Request requests[KINDS];
    MPI_Op op;
    MPI_Op_create(sum, 1, &op);
    MPI_Bcast_init(&root, 1, MPI_INT, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
    MPI_Allreduce_init(&one, &all, 1, MPI_INT, op, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
    MPI_Allgather_init(&own, 1, MPI_INT, gathered, 1, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[2]);
    MPI_Alltoall_init(to, 1, MPI_INT, from, 1, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[3]);
    beat();
    MPI_Scan_init(&one, &prefix, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[4]);
    MPI_Allreduce_init(&own, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[5]);
    for (int i = 0; i < 4; i++) {
        root = rank == 1 ? 100 + i : -1, one = i + 1, own = 10 * i + rank;
        for (int r = 0; r < size; r++) to[r] = 100 * i + 10 * rank + r;
        MPI_Startall(3, requests);
        if (i % 2) beat();
        MPI_Startall(3, requests + 3);
        MPI_Waitall(KINDS, requests, MPI_STATUSES_IGNORE);
        CHECK(root == 100 + i && all == size * (i + 1) && prefix == (rank + 1) * (i + 1) && least == 10 * i);
        for (int r = 0; r < size; r++) {
            CHECK(from[r] == 100 * i + 10 * r + rank);
            CHECK(gathered[r] == 10 * i + r);
        }
        beat();
    }
    for (int i = 0; i < KINDS; i++) MPI_Request_free(&requests[i]);
    MPI_Op_free(&op);
    beat();
    say("all %d", all);
    return done("persistent_collectives");
}
