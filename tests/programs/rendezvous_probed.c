// A large message that was probed and is not yet received.
#include "state.h"

enum { N = 100000 };
static int out[N], in[N];

int main(void) {
    start();
    MPI_Request request;
    MPI_Status status;
    int n, flag;
    fill(out, N, rank);
    MPI_Isend(out, N, MPI_INT, after, 4, MPI_COMM_WORLD, &request);
    beat();
    MPI_Probe(before, 4, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_INT, &n);
    CHECK(n == N && status.MPI_SOURCE == before);
    for (int i = 0; i < 3; i++) beat();
    MPI_Iprobe(before, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &status);
    CHECK(flag && status.MPI_TAG == 4);
    MPI_Recv(in, n, MPI_INT, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(filled(in, N, before));
    beat();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    beat();
    say("of %d", n);
    return done("rendezvous_probed");
}
