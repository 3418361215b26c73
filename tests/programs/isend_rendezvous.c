// Large messages sent and not yet received: the sender waits for the receiver.
#include "state.h"

enum { N = 200000 };
static int out[2][N], in[N];

int main(void) {
    start();
    MPI_Request requests[2];
    for (int i = 0; i < 2; i++) {
        fill(out[i], N, rank + 10 * i);
        MPI_Isend(out[i], N, MPI_INT, after, i, MPI_COMM_WORLD, &requests[i]);
        beat();
        meet();
    }
    for (int i = 1; i >= 0; i--) {
        memset(in, 0, sizeof in);
        MPI_Recv(in, N, MPI_INT, before, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(filled(in, N, before + 10 * i));
        beat();
    }
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    beat();
    say("saw %d", in[N - 1]);
    return done("isend_rendezvous");
}
