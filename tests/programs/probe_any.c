// Probes for anything with several messages in flight: they stay where they are, in order.
// ranks: 3
#include "state.h"

int main(void) {
    start();
    MPI_Status status;
    int in[8], n, sum = 0, flag, next[3] = {0};
    for (int i = 0; i < 3; i++) {
        int out[8];
        fill(out, 8, i);
        if (rank > 0) MPI_Send(out, 1 + i, MPI_INT, 0, 30, MPI_COMM_WORLD);
        meet();
    }
    for (int i = 0; i < 6; i++) {
        if (rank == 0) {
            MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
            MPI_Get_count(&status, MPI_INT, &n);
            int from = status.MPI_SOURCE;
            CHECK(n == 1 + next[from] && status.MPI_TAG == 30);
            MPI_Recv(in, n, MPI_INT, from, 30, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(filled(in, n, next[from]++));
            sum += n;
        }
        if (i % 2) meet();
    }
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    CHECK(!flag);
    meet();
    say("lengths %d", sum);
    return done("probe_any");
}
