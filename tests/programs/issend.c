// Synchronous sends whose receiver has not come yet.
#include "state.h"

int main(void) {
    start();
    int out[3][5], in[5];
    MPI_Request requests[3];
    for (int i = 0; i < 3; i++) {
        fill(out[i], 5, rank + i);
        MPI_Issend(out[i], 5, MPI_INT, after, i, MPI_COMM_WORLD, &requests[i]);
        beat();
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 3; i++) {
        MPI_Recv(in, 5, MPI_INT, before, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(filled(in, 5, before + i));
        meet();
        MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        beat();
    }
    say("last %d", in[4]);
    return done("issend");
}
