// A communicator that was freed while messages of it were under way, and later another in its place.
#include "state.h"

enum { N = 50000 };
static int out[N], in[N];

int main(void) {
    start();
    MPI_Comm copy;
    MPI_Request requests[4];
    int got = -1;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Irecv(&got, 1, MPI_INT, before, 0, copy, &requests[0]);
    MPI_Irecv(in, N, MPI_INT, before, 1, copy, &requests[1]);
    fill(out, N, rank);
    beat();
    MPI_Isend(&rank, 1, MPI_INT, after, 0, copy, &requests[2]);
    MPI_Isend(out, N, MPI_INT, after, 1, copy, &requests[3]);
    MPI_Comm_free(&copy);
    CHECK(copy == MPI_COMM_NULL);
    for (int i = 0; i < 4; i++) beat();
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    CHECK(got == before && filled(in, N, before));
    for (int i = 0; i < 3; i++) beat();
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    for (int i = 0; i < 3; i++) ring(copy);
    MPI_Comm_free(&copy);
    say("got %d", got);
    return done("comm_freed_pending");
}
