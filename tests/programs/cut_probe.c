// A message that a probe has found, a short or a long one, is received only after other events, for which its sender waits.
// ranks: 2
#include "state.h"
#include <sched.h>

enum { N = 100000 };
static int out[N], in[N];

int main(void) {
    start();
    int word = -1;
    beat();
    for (int i = 0; i < 4; i++) {
        int n = i < 2 ? 1 : N;
        if (rank == 0) {
            if (i % 2) MPI_Probe(1, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            else
                for (int flag = 0; !flag; sched_yield())
                    MPI_Iprobe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
            for (int tag = 2; tag < 4; tag++) MPI_Send(&i, 1, MPI_INT, 1, tag, MPI_COMM_WORLD);
            MPI_Recv(in, n, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(filled(in, n, i));
        } else {
            fill(out, n, i);
            MPI_Send(out, n, MPI_INT, 0, 1, MPI_COMM_WORLD);
            for (int tag = 2; tag < 4; tag++) MPI_Recv(&word, 1, MPI_INT, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(word == i);
        }
    }
    beat();
    say("last %d", word);
    return done("cut_probe");
}
