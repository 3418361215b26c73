// Sendrecv and Sendrecv_replace, small and large, with wildcards.
#include "state.h"

enum { N = 40000 };
static int data[N], in[N];

int main(void) {
    start();
    MPI_Status status;
    fill(data, N, rank);
    for (int i = 1; i < size; i++) {
        MPI_Sendrecv_replace(data, i % 2 ? N : 100, MPI_INT, after, i, before, i, MPI_COMM_WORLD, &status);
        CHECK(status.MPI_SOURCE == before && filled(data, 100, (rank + size - i) % size));
        meet();
    }
    fill(data, N, rank);
    for (int i = 0; i < 4; i++) {
        int n = i % 2 ? N : 3;
        MPI_Sendrecv(data, n, MPI_INT, after, i, in, N, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        CHECK(status.MPI_SOURCE == before && status.MPI_TAG == i && filled(in, n, before));
        meet();
    }
    say("last %d", in[2]);
    return done("sendrecv");
}
