/* Persistent requests, and all calls that complete a request or look at it. */
#include "surface.h"

enum { ROUNDS = 3, REQUESTS = 4 };

void persistent(void)
{
    int out[5] = {rank, rank, rank, rank, rank}, in[5];
    static char space[8192];
    MPI_Request receive[5], send[5];
    MPI_Buffer_attach(space, sizeof space);
    for (int i = 0; i < 5; i++)
        MPI_Recv_init(&in[i], 1, MPI_INT, i == 0 ? MPI_ANY_SOURCE : partner, 40 + i, MPI_COMM_WORLD, &receive[i]);
    MPI_Send_init(&out[0], 1, MPI_INT, partner, 40, MPI_COMM_WORLD, &send[0]);
    MPI_Ssend_init(&out[1], 1, MPI_INT, partner, 41, MPI_COMM_WORLD, &send[1]);
    MPI_Bsend_init(&out[2], 1, MPI_INT, partner, 42, MPI_COMM_WORLD, &send[2]);
    MPI_Rsend_init(&out[3], 1, MPI_INT, partner, 43, MPI_COMM_WORLD, &send[3]);
    MPI_Send_init(&out[4], 1, MPI_INT, partner, 44, MPI_COMM_WORLD, &send[4]);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Startall(5, receive);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Startall(4, send);
        MPI_Start(&send[4]);
        MPI_Waitall(5, receive, MPI_STATUSES_IGNORE);
        MPI_Waitall(5, send, MPI_STATUSES_IGNORE);
        CHECK(in[0] == partner && in[4] == partner);
    }
    for (int i = 0; i < 5; i++) {
        MPI_Request_free(&receive[i]);
        MPI_Request_free(&send[i]);
    }
    void *back;
    int bytes;
    MPI_Buffer_detach(&back, &bytes);
}

static int in[REQUESTS], out[REQUESTS];
static MPI_Request receive[REQUESTS], send[REQUESTS];
static MPI_Status status[REQUESTS];

static void post(int tag)
{
    for (int i = 0; i < REQUESTS; i++) {
        in[i] = -1;
        out[i] = rank * 10 + i;
        MPI_Irecv(&in[i], 1, MPI_INT, partner, tag + i, MPI_COMM_WORLD, &receive[i]);
    }
    for (int i = 0; i < REQUESTS; i++)
        MPI_Isend(&out[i], 1, MPI_INT, partner, tag + i, MPI_COMM_WORLD, &send[i]);
}

static void sent(void)
{
    MPI_Waitall(REQUESTS, send, MPI_STATUSES_IGNORE);
    for (int i = 0; i < REQUESTS; i++)
        CHECK(in[i] == partner * 10 + i && receive[i] == MPI_REQUEST_NULL);
}

static void waits(void)
{
    int index, some, indices[REQUESTS];
    post(50);
    for (int i = 0; i < REQUESTS; i++)
        MPI_Wait(&receive[i], i % 2 ? MPI_STATUS_IGNORE : &status[i]);
    sent();
    post(60);
    MPI_Waitall(REQUESTS, receive, status);
    for (int i = 0; i < REQUESTS; i++)
        CHECK(status[i].MPI_SOURCE == partner && status[i].MPI_TAG == 60 + i);
    sent();
    post(70);
    for (int i = 0; i < REQUESTS; i++) {
        MPI_Waitany(REQUESTS, receive, &index, &status[0]);
        CHECK(status[0].MPI_TAG == 70 + index);
    }
    MPI_Waitany(REQUESTS, receive, &index, MPI_STATUS_IGNORE);
    CHECK(index == MPI_UNDEFINED);
    sent();
    post(80);
    for (int done = 0; done < REQUESTS; done += some) {
        MPI_Waitsome(REQUESTS, receive, &some, indices, done ? MPI_STATUSES_IGNORE : status);
        CHECK(some >= 1);
    }
    sent();
}

static void tests(void)
{
    int flag, index, some, indices[REQUESTS];
    post(90);
    for (int i = 0; i < REQUESTS; i++)
        for (flag = 0; !flag;)
            MPI_Test(&receive[i], &flag, i % 2 ? MPI_STATUS_IGNORE : &status[i]);
    sent();
    post(100);
    for (flag = 0; !flag;)
        MPI_Testall(REQUESTS, receive, &flag, status);
    sent();
    post(110);
    for (int done = 0; done < REQUESTS; done += flag)
        MPI_Testany(REQUESTS, receive, &index, &flag, &status[0]);
    sent();
    post(120);
    for (int done = 0; done < REQUESTS; done += some)
        MPI_Testsome(REQUESTS, receive, &some, indices, status);
    sent();
    post(130);
    for (flag = 0; !flag;)
        MPI_Request_get_status(receive[0], &flag, &status[0]);
    CHECK(receive[0] != MPI_REQUEST_NULL);
    MPI_Waitall(REQUESTS, receive, status);
    sent();
}

void completion(void)
{
    waits();
    tests();
}
