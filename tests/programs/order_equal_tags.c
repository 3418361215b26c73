// The order of messages with equal tags and different lengths, from eager to rendezvous, all in flight.
#include "state.h"

enum { MOST = 40000 };
static const int lengths[6] = {1, MOST, 10, 3000, 2, 20000};
static int out[6][MOST], in[MOST];

int main(void) {
    start();
    MPI_Request requests[6];
    MPI_Status status;
    int n;
    for (int i = 0; i < 6; i++) {
        fill(out[i], lengths[i], 10 * i + rank);
        MPI_Isend(out[i], lengths[i], MPI_INT, after, 3, MPI_COMM_WORLD, &requests[i]);
        if (i % 2) beat();
    }
    for (int i = 0; i < 6; i++) {
        MPI_Recv(in, MOST, MPI_INT, before, i == 3 ? MPI_ANY_TAG : 3, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_INT, &n);
        CHECK(n == lengths[i] && filled(in, n, 10 * i + before));
        meet();
    }
    MPI_Waitall(6, requests, MPI_STATUSES_IGNORE);
    beat();
    say("last of %d", n);
    return done("order_equal_tags");
}
