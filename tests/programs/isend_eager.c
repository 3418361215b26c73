// Small messages sent and not yet received, taken in another order than they were sent.
#include "state.h"

int main(void) {
    start();
    int out[4][8], in[8], seen = 0;
    MPI_Request requests[4];
    for (int i = 0; i < 4; i++) {
        fill(out[i], 8, rank + 10 * i);
        MPI_Isend(out[i], 8, MPI_INT, after, i, MPI_COMM_WORLD, &requests[i]);
        beat();
    }
    for (int i = 3; i >= 0; i--) {
        MPI_Recv(in, 8, MPI_INT, before, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(filled(in, 8, before + 10 * i));
        seen += in[7];
        meet();
    }
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 4; i++) CHECK(requests[i] == MPI_REQUEST_NULL);
    say("saw %d", seen);
    return done("isend_eager");
}
