// Matched messages held in hand, and received in another order than they were matched; the error in a single status stays as
// it was.
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
        status.MPI_ERROR = MPI_ERR_DIMS;
        MPI_Mprobe(before, i == 1 ? MPI_ANY_TAG : 8, MPI_COMM_WORLD, &messages[i], &status);
        MPI_Get_count(&status, MPI_INT, &n);
        CHECK(n == 2 + i && status.MPI_ERROR == MPI_ERR_DIMS && messages[i] != MPI_MESSAGE_NULL);
        beat();
    }
    for (int i = 2; i >= 0; i--) {
        status.MPI_ERROR = MPI_ERR_TOPOLOGY;
        MPI_Mrecv(in, 4, MPI_INT, &messages[i], &status);
        CHECK(status.MPI_ERROR == MPI_ERR_TOPOLOGY);
        CHECK(messages[i] == MPI_MESSAGE_NULL && status.MPI_TAG == 8 && filled(in, 2 + i, before + i));
        beat();
    }
    say("last %d", in[1]);
    return done("mprobe");
}
