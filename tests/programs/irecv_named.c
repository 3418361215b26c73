// Receives posted before anything is sent, completed in another order, with their statuses.
#include "state.h"

int main(void) {
    start();
    int in[4][6], out[6];
    MPI_Request requests[4];
    MPI_Status status;
    memset(in, -1, sizeof in);
    for (int i = 0; i < 4; i++) {
        MPI_Irecv(in[i], 6, MPI_INT, before, 20 + i, MPI_COMM_WORLD, &requests[i]);
        beat();
    }
    for (int i = 0; i < 4; i++) {
        fill(out, 6, rank + 7 * i);
        MPI_Send(out, 3 + i % 4, MPI_INT, after, 20 + i, MPI_COMM_WORLD);
        beat();
    }
    for (int i = 3; i >= 0; i--) {
        int n;
        MPI_Wait(&requests[i], &status);
        MPI_Get_count(&status, MPI_INT, &n);
        CHECK(n == 3 + i % 4 && status.MPI_SOURCE == before && status.MPI_TAG == 20 + i);
        CHECK(filled(in[i], n, before + 7 * i));
        if (n < 6) CHECK(in[i][n] == -1);
        meet();
    }
    say("tags down to %d", status.MPI_TAG);
    return done("irecv_named");
}
