/* What MPI-4 added: partitioned messages, persistent collectives, nonblocking Sendrecv, large counts. Nothing is called
 * where the MPI has none of it (Open MPI 4.1). */
#include "surface.h"

#if MPI_VERSION >= 4 || (defined OMPI_MAJOR_VERSION && OMPI_MAJOR_VERSION >= 5)
#define HAVE_MPI4_REQUESTS
#endif
#if MPI_VERSION >= 4
#define HAVE_LARGE_COUNTS
#endif

#ifdef HAVE_MPI4_REQUESTS
enum { PARTS = 4, EACH = 8 };

static void partitioned(void)
{
    int out[PARTS * EACH], in[PARTS * EACH], arrived;
    MPI_Request r[2];
    for (int i = 0; i < PARTS * EACH; i++)
        out[i] = rank + i;
    MPI_Psend_init(out, PARTS, EACH, MPI_INT, partner, 70, MPI_COMM_WORLD, MPI_INFO_NULL, &r[0]);
    MPI_Precv_init(in, PARTS, EACH, MPI_INT, partner, 70, MPI_COMM_WORLD, MPI_INFO_NULL, &r[1]);
    for (int round = 0; round < 2; round++) {
        MPI_Startall(2, r);
        MPI_Pready(0, r[0]);
        MPI_Pready_range(1, 2, r[0]);
        int last = 3;
        MPI_Pready_list(1, &last, r[0]);
        for (arrived = 0; !arrived;)
            MPI_Parrived(r[1], 3, &arrived);
        MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
        CHECK(in[PARTS * EACH - 1] == partner + PARTS * EACH - 1);
    }
    MPI_Request_free(&r[0]);
    MPI_Request_free(&r[1]);
}

static void persistent_collectives(void)
{
    int in[64], out[64];
    MPI_Request r[5];
    for (int i = 0; i < 64; i++)
        out[i] = rank;
    MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &r[0]);
    MPI_Bcast_init(out + 32, 1, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r[1]);
    MPI_Allreduce_init(out, in, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &r[2]);
    MPI_Allgather_init(out, 1, MPI_INT, in + 1, 1, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &r[3]);
    MPI_Alltoall_init(out, 1, MPI_INT, in + 32, 1, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &r[4]);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 5; i++) {
            MPI_Start(&r[i]);
            MPI_Wait(&r[i], MPI_STATUS_IGNORE);
        }
    CHECK(out[32] == 0 && in[0] == size * (size - 1) / 2 && in[1 + partner] == partner && in[32 + partner] == partner);
    for (int i = 0; i < 5; i++)
        MPI_Request_free(&r[i]);
}

static void nonblocking_exchange(void)
{
    int out = rank, in = -1;
    MPI_Request r;
    MPI_Isendrecv(&out, 1, MPI_INT, partner, 80, &in, 1, MPI_INT, partner, 80, MPI_COMM_WORLD, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    CHECK(in == partner);
    MPI_Isendrecv_replace(&out, 1, MPI_INT, partner, 81, partner, 81, MPI_COMM_WORLD, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    CHECK(out == partner);
}
#endif

#ifdef HAVE_LARGE_COUNTS
static void large_counts(void)
{
    MPI_Count two = 2;
    int out[2] = {rank, rank}, in[2], sums[2];
    MPI_Request r[2];
    MPI_Irecv_c(in, two, MPI_INT, partner, 90, MPI_COMM_WORLD, &r[0]);
    MPI_Isend_c(out, two, MPI_INT, partner, 90, MPI_COMM_WORLD, &r[1]);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    CHECK(in[1] == partner);
    if (rank % 2) {
        MPI_Send_c(out, two, MPI_INT, partner, 91, MPI_COMM_WORLD);
        MPI_Recv_c(in, two, MPI_INT, partner, 91, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv_c(in, two, MPI_INT, partner, 91, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send_c(out, two, MPI_INT, partner, 91, MPI_COMM_WORLD);
    }
    MPI_Bcast_c(in, two, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Allreduce_c(out, sums, two, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sums[1] == size * (size - 1) / 2);
}
#endif

void mpi4(void)
{
#ifdef HAVE_MPI4_REQUESTS
    partitioned();
    persistent_collectives();
    nonblocking_exchange();
#endif
#ifdef HAVE_LARGE_COUNTS
    large_counts();
#endif
}
