// Sends whose requests were freed while they were under way, small and large.
#include "state.h"

enum { N = 50000 };
static int out[2][N], in[N];

int main(void) {
    start();
    MPI_Request request;
    for (int i = 0; i < 2; i++) {
        fill(out[i], N, rank + i);
        MPI_Isend(out[i], i ? N : 4, MPI_INT, after, i, MPI_COMM_WORLD, &request);
        MPI_Request_free(&request);
        CHECK(request == MPI_REQUEST_NULL);
        beat();
    }
    meet();
    for (int i = 0; i < 2; i++) {
        MPI_Recv(in, N, MPI_INT, before, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(filled(in, i ? N : 4, before + i));
        beat();
    }
    meet();
    say("last %d", in[N - 1]);
    return done("request_free_send");
}
