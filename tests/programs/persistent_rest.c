// Most of the other persistent collectives, one with an operation that is freed, inactive and under way at cuts (some fail under MPICH 4.0, natively too).
// mpi: 5
#include "state.h"

enum { KINDS = 10 };

static void add(void *in, void *inout, int *n, MPI_Datatype *type) {
    (void)type;
    for (int i = 0; i < *n; i++) ((int *)inout)[i] += ((int *)in)[i];
}

int main(void) {
    start();
    int *ones = calloc(size, sizeof(int)), *places = calloc(size, sizeof(int)), *bytes = calloc(size, sizeof(int));
    int *v = calloc(size, sizeof(int)), *a = calloc(size, sizeof(int)), *w = calloc(size, sizeof(int));
    int *gv = calloc(size, sizeof(int)), *to = calloc(size, sizeof(int));
    MPI_Datatype *types = calloc(size, sizeof(MPI_Datatype));
    int own, before_me = 0, sum = 0, block = 0, given = 0, given_v = 0;
    MPI_Request requests[KINDS];
    MPI_Op op;
    for (int r = 0; r < size; r++) ones[r] = 1, places[r] = r, bytes[r] = r * sizeof(int), types[r] = MPI_INT;
    MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
    MPI_Allgatherv_init(&own, 1, MPI_INT, v, ones, places, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
    MPI_Alltoallv_init(to, ones, places, MPI_INT, a, ones, places, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[2]);
    MPI_Alltoallw_init(to, ones, bytes, types, w, ones, bytes, types, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[3]);
    beat();
    MPI_Op_create(add, 1, &op);
    MPI_Exscan_init(&own, &before_me, 1, MPI_INT, op, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[4]);
    MPI_Op_free(&op);
    MPI_Gatherv_init(&own, 1, MPI_INT, gv, ones, places, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[5]);
    MPI_Reduce_init(&own, &sum, 1, MPI_INT, MPI_SUM, 2, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[6]);
    MPI_Reduce_scatter_block_init(to, &block, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[7]);
    MPI_Scatter_init(to, 1, MPI_INT, &given, 1, MPI_INT, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[8]);
    MPI_Scatterv_init(to, ones, places, MPI_INT, &given_v, 1, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[9]);
    for (int i = 0; i < 3; i++) {
        own = 100 * i + rank;
        for (int r = 0; r < size; r++) to[r] = 1000 * i + 10 * rank + r;
        MPI_Startall(5, requests);
        beat();
        MPI_Startall(KINDS - 5, requests + 5);
        MPI_Waitall(KINDS, requests, MPI_STATUSES_IGNORE);
        for (int r = 0; r < size; r++) {
            CHECK(v[r] == 100 * i + r && a[r] == 1000 * i + 10 * r + rank && w[r] == a[r]);
            CHECK(rank != 0 || gv[r] == v[r]);
        }
        int all = 100 * i * size + size * (size - 1) / 2;
        CHECK(rank == 0 || before_me == 100 * i * rank + rank * (rank - 1) / 2);
        CHECK((rank != 2 || sum == all) && block == size * (1000 * i + rank) + 5 * size * (size - 1));
        CHECK(given == 1000 * i + 10 + rank && given_v == 1000 * i + rank);
        beat();
    }
    for (int i = 0; i < KINDS; i++) MPI_Request_free(&requests[i]);
    beat();
    say("through");
    return done("persistent_rest");
}
