/* All collectives, blocking and nonblocking, and those of neighbourhoods. */
#include "surface.h"

enum { MOST = 64 };

static int in[MOST], out[MOST], counts[MOST], places[MOST], bytes[MOST];
static MPI_Datatype types[MOST];

static void prepare(void)
{
    CHECK(size <= MOST);
    for (int i = 0; i < MOST; i++) {
        in[i] = -1;
        out[i] = rank;
        counts[i] = 1;
        places[i] = i;
        bytes[i] = i * (int)sizeof(int);
        types[i] = MPI_INT;
    }
}

static void blocking(void)
{
    MPI_Comm all = MPI_COMM_WORLD;
    MPI_Barrier(all);
    int root = rank == 0 ? 42 : 0;
    MPI_Bcast(&root, 1, MPI_INT, 0, all);
    CHECK(root == 42);
    MPI_Gather(out, 1, MPI_INT, in, 1, MPI_INT, 0, all);
    CHECK(rank != 0 || in[size - 1] == size - 1);
    MPI_Gatherv(out, 1, MPI_INT, in, counts, places, MPI_INT, 0, all);
    MPI_Scatter(in, 1, MPI_INT, &root, 1, MPI_INT, 0, all);
    CHECK(root == rank);
    MPI_Scatterv(in, counts, places, MPI_INT, &root, 1, MPI_INT, 0, all);
    MPI_Allgather(out, 1, MPI_INT, in, 1, MPI_INT, all);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, 1, MPI_INT, all);
    CHECK(in[size - 1] == size - 1);
    MPI_Allgatherv(out, 1, MPI_INT, in, counts, places, MPI_INT, all);
    MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, all);
    MPI_Alltoallv(out, counts, places, MPI_INT, in, counts, places, MPI_INT, all);
    MPI_Alltoallw(out, counts, bytes, types, in, counts, bytes, types, all);
    CHECK(in[partner] == partner);
    MPI_Reduce(out, in, 1, MPI_INT, MPI_SUM, 0, all);
    CHECK(rank != 0 || in[0] == size * (size - 1) / 2);
    MPI_Allreduce(out, in, 2, MPI_INT, MPI_MAX, all);
    MPI_Allreduce(MPI_IN_PLACE, in, 2, MPI_INT, MPI_MAX, all);
    CHECK(in[1] == size - 1);
    MPI_Reduce_scatter_block(out, in, 1, MPI_INT, MPI_SUM, all);
    MPI_Reduce_scatter(out, in, counts, MPI_INT, MPI_SUM, all);
    CHECK(in[0] == size * (size - 1) / 2);
    MPI_Scan(out, in, 1, MPI_INT, MPI_SUM, all);
    CHECK(in[0] == rank * (rank + 1) / 2);
    MPI_Exscan(out, in, 1, MPI_INT, MPI_SUM, all);
    MPI_Reduce_local(out, in, 1, MPI_INT, MPI_SUM);
}

static void nonblocking(void)
{
    MPI_Comm all = MPI_COMM_WORLD;
    MPI_Request r[17];
    static int result[17][MOST];
    int root = rank == 0 ? 43 : 0;
    MPI_Ibarrier(all, &r[0]);
    MPI_Ibcast(&root, 1, MPI_INT, 0, all, &r[1]);
    MPI_Igather(out, 1, MPI_INT, result[2], 1, MPI_INT, 0, all, &r[2]);
    MPI_Igatherv(out, 1, MPI_INT, result[3], counts, places, MPI_INT, 0, all, &r[3]);
    MPI_Iscatter(places, 1, MPI_INT, result[4], 1, MPI_INT, 0, all, &r[4]);
    MPI_Iscatterv(places, counts, places, MPI_INT, result[5], 1, MPI_INT, 0, all, &r[5]);
    MPI_Iallgather(out, 1, MPI_INT, result[6], 1, MPI_INT, all, &r[6]);
    MPI_Iallgatherv(out, 1, MPI_INT, result[7], counts, places, MPI_INT, all, &r[7]);
    MPI_Ialltoall(out, 1, MPI_INT, result[8], 1, MPI_INT, all, &r[8]);
    MPI_Ialltoallv(out, counts, places, MPI_INT, result[9], counts, places, MPI_INT, all, &r[9]);
    MPI_Ialltoallw(out, counts, bytes, types, result[10], counts, bytes, types, all, &r[10]);
    MPI_Ireduce(out, result[11], 1, MPI_INT, MPI_SUM, 0, all, &r[11]);
    MPI_Iallreduce(out, result[12], 1, MPI_INT, MPI_SUM, all, &r[12]);
    MPI_Ireduce_scatter_block(out, result[13], 1, MPI_INT, MPI_SUM, all, &r[13]);
    MPI_Ireduce_scatter(out, result[14], counts, MPI_INT, MPI_SUM, all, &r[14]);
    MPI_Iscan(out, result[15], 1, MPI_INT, MPI_SUM, all, &r[15]);
    MPI_Iexscan(out, result[16], 1, MPI_INT, MPI_SUM, all, &r[16]);
    MPI_Wait(&r[0], MPI_STATUS_IGNORE);
    MPI_Waitall(17, r, MPI_STATUSES_IGNORE);
    CHECK(root == 43 && result[4][0] == rank && result[6][size - 1] == size - 1 && result[10][partner] == partner);
    CHECK(result[12][0] == size * (size - 1) / 2 && result[15][0] == rank * (rank + 1) / 2);
}

void collectives(void)
{
    prepare();
    blocking();
    nonblocking();
}

void neighbourhood(void)
{
    MPI_Comm ring;
    MPI_Request r[5];
    MPI_Aint displacements[2] = {0, sizeof(int)};
    int result[5][2], around = 1;
    prepare();
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &around, 0, &ring);
    MPI_Neighbor_allgather(out, 1, MPI_INT, in, 1, MPI_INT, ring);
    CHECK(in[0] == (rank + size - 1) % size && in[1] == (rank + 1) % size);
    MPI_Neighbor_allgatherv(out, 1, MPI_INT, in, counts, places, MPI_INT, ring);
    MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, ring);
    MPI_Neighbor_alltoallv(out, counts, places, MPI_INT, in, counts, places, MPI_INT, ring);
    MPI_Neighbor_alltoallw(out, counts, displacements, types, in, counts, displacements, types, ring);
    CHECK(in[0] == (rank + size - 1) % size && in[1] == (rank + 1) % size);
    MPI_Ineighbor_allgather(out, 1, MPI_INT, result[0], 1, MPI_INT, ring, &r[0]);
    MPI_Ineighbor_allgatherv(out, 1, MPI_INT, result[1], counts, places, MPI_INT, ring, &r[1]);
    MPI_Ineighbor_alltoall(out, 1, MPI_INT, result[2], 1, MPI_INT, ring, &r[2]);
    MPI_Ineighbor_alltoallv(out, counts, places, MPI_INT, result[3], counts, places, MPI_INT, ring, &r[3]);
    MPI_Ineighbor_alltoallw(out, counts, displacements, types, result[4], counts, displacements, types, ring, &r[4]);
    MPI_Waitall(5, r, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 5; i++)
        CHECK(result[i][0] == (rank + size - 1) % size);
    MPI_Comm_free(&ring);
}
