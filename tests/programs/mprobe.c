// Matched messages held in hand, and received in another order than they were matched.
#include "state.h"

int main(void) {
    start();
    int out[3][4], in[4], n;
    MPI_Message messages[3];
    MPI_Status status;
    for (int i = 0; i < 3; i++) {
        fill(out[i], 4, rank + i);
        MPI_Send(out[i], 2 + i, MPI_INT, after, 8, MPI_COMM_WORLD);
    }
    beat();
    for (int i = 0; i < 3; i++) {
        MPI_Mprobe(before, i == 1 ? MPI_ANY_TAG : 8, MPI_COMM_WORLD, &messages[i], &status);
        MPI_Get_count(&status, MPI_INT, &n);
        CHECK(n == 2 + i && messages[i] != MPI_MESSAGE_NULL);
        beat();
    }
    for (int i = 2; i >= 0; i--) {
        MPI_Mrecv(in, 4, MPI_INT, &messages[i], &status);
        CHECK(messages[i] == MPI_MESSAGE_NULL && status.MPI_TAG == 8 && filled(in, 2 + i, before + i));
        beat();
    }
    say("last %d", in[1]);
    return done("mprobe");
}
