/* Blocking and nonblocking messages in all modes, probes, matched probes, cancellation, no partner at all. */
#include "surface.h"

enum { N = 16 };

static void fill(int *data, int with)
{
    for (int i = 0; i < N; i++)
        data[i] = with + i;
}

static void blocking_modes(void)
{
    int out[N], in[N] = {0};
    static char space[8192];
    MPI_Status status;
    fill(out, rank);
    MPI_Buffer_attach(space, sizeof space);
    if (rank % 2 == 0) {
        MPI_Send(out, N, MPI_INT, partner, 1, MPI_COMM_WORLD);
        MPI_Ssend(out, N, MPI_INT, partner, 2, MPI_COMM_WORLD);
        MPI_Bsend(out, N, MPI_INT, partner, 3, MPI_COMM_WORLD);
        MPI_Recv(NULL, 0, MPI_INT, partner, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Rsend(out, N, MPI_INT, partner, 5, MPI_COMM_WORLD);
    } else {
        MPI_Request ready;
        MPI_Recv(in, N, MPI_INT, partner, 1, MPI_COMM_WORLD, &status);
        MPI_Recv(in, N, MPI_INT, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &status);
        CHECK(status.MPI_SOURCE == partner && status.MPI_TAG == 2);
        MPI_Recv(in, N, MPI_INT, partner, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Irecv(in, N, MPI_INT, partner, 5, MPI_COMM_WORLD, &ready);
        MPI_Send(NULL, 0, MPI_INT, partner, 4, MPI_COMM_WORLD);
        MPI_Wait(&ready, &status);
        CHECK(in[N - 1] == partner + N - 1);
    }
    int *back, bytes;
    MPI_Buffer_detach(&back, &bytes);
    CHECK(bytes == sizeof space);
    MPI_Sendrecv(out, N, MPI_INT, partner, 6, in, N, MPI_INT, partner, 6, MPI_COMM_WORLD, &status);
    CHECK(in[0] == partner);
    MPI_Sendrecv_replace(out, N, MPI_INT, partner, 7, partner, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(out[0] == partner);
}

static void nonblocking_modes(void)
{
    int out[N], in[5][N];
    static char space[8192];
    MPI_Request r[10];
    fill(out, rank);
    MPI_Buffer_attach(space, sizeof space);
    for (int i = 0; i < 5; i++)
        MPI_Irecv(in[i], N, MPI_INT, i == 4 ? MPI_ANY_SOURCE : partner, 10 + i, MPI_COMM_WORLD, &r[i]);
    MPI_Barrier(MPI_COMM_WORLD); /* a ready send needs its receive posted */
    MPI_Isend(out, N, MPI_INT, partner, 10, MPI_COMM_WORLD, &r[5]);
    MPI_Issend(out, N, MPI_INT, partner, 11, MPI_COMM_WORLD, &r[6]);
    MPI_Ibsend(out, N, MPI_INT, partner, 12, MPI_COMM_WORLD, &r[7]);
    MPI_Irsend(out, N, MPI_INT, partner, 13, MPI_COMM_WORLD, &r[8]);
    MPI_Isend(out, N, MPI_INT, partner, 14, MPI_COMM_WORLD, &r[9]);
    MPI_Waitall(10, r, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 5; i++)
        CHECK(in[i][1] == partner + 1);
    void *back;
    int bytes;
    MPI_Buffer_detach(&back, &bytes);

    MPI_Isend(out, N, MPI_INT, partner, 15, MPI_COMM_WORLD, &r[0]);
    MPI_Request_free(&r[0]);
    MPI_Recv(in[0], N, MPI_INT, partner, 15, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);

    MPI_Status status;
    int cancelled;
    MPI_Irecv(in[0], N, MPI_INT, partner, 99, MPI_COMM_WORLD, &r[0]);
    MPI_Cancel(&r[0]);
    MPI_Wait(&r[0], &status);
    MPI_Test_cancelled(&status, &cancelled);
    CHECK(cancelled);
}

static void probes(void)
{
    int out[N], in[N], count, flag = 0;
    MPI_Status status;
    MPI_Message message;
    MPI_Request request;
    fill(out, rank);
    for (int tag = 20; tag < 24; tag++)
        MPI_Isend(out, N, MPI_INT, partner, tag, MPI_COMM_WORLD, &request), MPI_Request_free(&request);
    MPI_Probe(MPI_ANY_SOURCE, 20, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK(status.MPI_SOURCE == partner && count == N);
    MPI_Recv(in, count, MPI_INT, status.MPI_SOURCE, 20, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    while (!flag)
        MPI_Iprobe(partner, 21, MPI_COMM_WORLD, &flag, &status);
    MPI_Recv(in, N, MPI_INT, partner, 21, MPI_COMM_WORLD, &status);
    MPI_Mprobe(partner, 22, MPI_COMM_WORLD, &message, &status);
    MPI_Mrecv(in, N, MPI_INT, &message, &status);
    CHECK(status.MPI_SOURCE == partner && status.MPI_TAG == 22);
    for (flag = 0; !flag;)
        MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &message, MPI_STATUS_IGNORE);
    MPI_Imrecv(in, N, MPI_INT, &message, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(in[2] == partner + 2);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void odd_partners_and_types(void)
{
    int data[N], in[N];
    MPI_Request request[2];
    MPI_Status status;
    MPI_Datatype stride;
    fill(data, rank);
    MPI_Send(data, N, MPI_INT, MPI_PROC_NULL, 30, MPI_COMM_WORLD);
    MPI_Recv(data, N, MPI_INT, MPI_PROC_NULL, 30, MPI_COMM_WORLD, &status);
    MPI_Irecv(data, N, MPI_INT, MPI_PROC_NULL, 30, MPI_COMM_WORLD, &request[0]);
    MPI_Wait(&request[0], &status);

    MPI_Type_vector(N / 2, 1, 2, MPI_INT, &stride);
    MPI_Type_commit(&stride);
    MPI_Irecv(in, N / 2, MPI_INT, partner, 31, MPI_COMM_WORLD, &request[0]);
    MPI_Isend(data, 1, stride, partner, 31, MPI_COMM_WORLD, &request[1]);
    MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
    MPI_Type_free(&stride);
    CHECK(in[1] == partner + 2);

    MPI_Isend(data, N, MPI_INT, rank, 32, MPI_COMM_WORLD, &request[0]);
    MPI_Recv(in, N, MPI_INT, rank, 32, MPI_COMM_WORLD, &status);
    MPI_Wait(&request[0], MPI_STATUS_IGNORE);
    MPI_Sendrecv(data, 1, MPI_INT, 0, 33, in, 1, MPI_INT, 0, 33, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    CHECK(in[0] == data[0]);
}

void point_to_point(void)
{
    blocking_modes();
    nonblocking_modes();
    probes();
    odd_partners_and_types();
}
