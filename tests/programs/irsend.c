// Ready sends: the receive is posted before, and is pending when the send is made.
#include "state.h"

int main(void) {
    start();
    int in[3], out[3];
    MPI_Request receives[3], sends[3];
    for (int i = 0; i < 3; i++) MPI_Irecv(&in[i], 1, MPI_INT, before, i, MPI_COMM_WORLD, &receives[i]);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 3; i++) {
        out[i] = 10 * rank + i;
        MPI_Irsend(&out[i], 1, MPI_INT, after, i, MPI_COMM_WORLD, &sends[i]);
        beat();
    }
    for (int i = 0; i < 3; i++) {
        MPI_Wait(&receives[i], MPI_STATUS_IGNORE);
        CHECK(in[i] == 10 * before + i);
        MPI_Wait(&sends[i], MPI_STATUS_IGNORE);
        meet();
    }
    say("last %d", in[2]);
    return done("irsend");
}
