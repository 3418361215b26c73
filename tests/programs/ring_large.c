// Large messages to both neighbours in a ring, and no collective: ranks are up to an iteration apart.
// ranks: 4
#include "state.h"

enum { N = 200000, ITERATIONS = 8 };
static int out[N], in[2][N];

int main(void) {
    start();
    for (int i = 0; i < ITERATIONS; i++) {
        MPI_Request requests[2];
        fill(out, N, rank + 10 * i);
        MPI_Irecv(in[0], N, MPI_INT, before, 1, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(in[1], N, MPI_INT, after, 2, MPI_COMM_WORLD, &requests[1]);
        MPI_Send(out, N, MPI_INT, after, 1, MPI_COMM_WORLD);
        MPI_Send(out, N, MPI_INT, before, 2, MPI_COMM_WORLD);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        CHECK(filled(in[0], N, before + 10 * i) && filled(in[1], N, after + 10 * i));
    }
    say("ends with %d and %d", in[0][N - 1], in[1][N - 1]);
    return done("ring_large");
}
