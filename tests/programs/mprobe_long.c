// A long message, sent in one call, is matched and held while others are sent: at a cut its sender waits for it.
// ranks: 2
#include "state.h"

enum { N = 200000 };
static int out[N], in[N];

int main(void) {
    start();
    int one = 1;
    MPI_Message message;
    for (int i = 0; i < 2; i++) {
        if (rank == 0) {
            MPI_Mprobe(1, 1, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
            for (int tag = 2; tag < 4; tag++) MPI_Send(&one, 1, MPI_INT, 1, tag, MPI_COMM_WORLD);
            MPI_Mrecv(in, N, MPI_INT, &message, MPI_STATUS_IGNORE);
            for (int k = 0; k < N; k++) CHECK(in[k] == i + k);
        } else {
            for (int k = 0; k < N; k++) out[k] = i + k;
            MPI_Send(out, N, MPI_INT, 0, 1, MPI_COMM_WORLD);
            for (int tag = 2; tag < 4; tag++) MPI_Recv(&one, 1, MPI_INT, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
    beat();
    say("held");
    return done("mprobe_long");
}
