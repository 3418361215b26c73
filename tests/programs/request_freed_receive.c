// Receives whose requests were freed before anything was sent: their messages come all the same, and others after them.
#include "state.h"

enum { N = 3 };
static volatile int in[N];

int main(void) {
    start();
    MPI_Request request;
    int out, later, flag;
    for (int i = 0; i < N; i++) {
        in[i] = -1;
        MPI_Irecv((void *)&in[i], 1, MPI_INT, before, i, MPI_COMM_WORLD, &request);
        MPI_Request_free(&request);
        CHECK(request == MPI_REQUEST_NULL);
        beat();
    }
    for (int i = 0; i < N; i++) {
        out = 10 * i + rank;
        MPI_Send(&out, 1, MPI_INT, after, i, MPI_COMM_WORLD);
        beat();
    }
    for (int i = 0; i < N; i++) {
        MPI_Sendrecv(&rank, 1, MPI_INT, after, N + i, &later, 1, MPI_INT, before, N + i, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        CHECK(later == before);
        beat();
    }
    // No call says that they are there, so no cut may lie behind this.
    for (int i = 0; i < N; i++) {
        while (in[i] < 0) MPI_Iprobe(before, 2 * N, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        CHECK(in[i] == 10 * i + before);
    }
    say("last %d", in[N - 1]);
    return done("request_freed_receive");
}
