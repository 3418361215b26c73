// Messages of a rank to itself, in flight: small, large, and a receive that waits for one.
#include "state.h"

enum { N = 30000 };
static int out[N], in[N];

int main(void) {
    start();
    int small = rank + 50, got = -1, late = -1;
    MPI_Request large, one, wait;
    fill(out, N, rank);
    MPI_Irecv(&late, 1, MPI_INT, rank, 2, MPI_COMM_WORLD, &wait);
    MPI_Isend(&small, 1, MPI_INT, rank, 0, MPI_COMM_WORLD, &one);
    MPI_Isend(out, N, MPI_INT, rank, 1, MPI_COMM_WORLD, &large);
    for (int i = 0; i < 4; i++) beat();
    MPI_Recv(in, N, MPI_INT, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(filled(in, N, rank));
    beat();
    MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(got == small);
    MPI_Send(&got, 1, MPI_INT, rank, 2, MPI_COMM_WORLD);
    for (int i = 0; i < 2; i++) beat();
    MPI_Wait(&wait, MPI_STATUS_IGNORE);
    MPI_Wait(&one, MPI_STATUS_IGNORE);
    MPI_Wait(&large, MPI_STATUS_IGNORE);
    CHECK(late == small);
    beat();
    say("to myself %d", late);
    return done("self_message");
}
