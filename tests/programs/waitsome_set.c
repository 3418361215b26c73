// A set of receives of which some are complete, by Waitany and Waitsome.
#include "state.h"

int main(void) {
    start();
    int in[6], out = rank, index, n, left = 6, indices[6];
    MPI_Request requests[6];
    MPI_Status statuses[6];
    for (int i = 0; i < 6; i++) {
        in[i] = -1;
        MPI_Irecv(&in[i], 1, MPI_INT, before, i, MPI_COMM_WORLD, &requests[i]);
    }
    for (int i = 5; i >= 3; i--) {
        MPI_Send(&out, 1, MPI_INT, after, i, MPI_COMM_WORLD);
        MPI_Waitany(6, requests, &index, statuses);
        CHECK(index == i && requests[i] == MPI_REQUEST_NULL && in[i] == before && statuses[0].MPI_TAG == i);
        left--;
        meet();
    }
    for (int i = 0; i < 3; i++) MPI_Send(&out, 1, MPI_INT, after, i, MPI_COMM_WORLD);
    beat();
    while (left > 0) {
        MPI_Waitsome(6, requests, &n, indices, statuses);
        CHECK(n > 0 && n <= left);
        for (int i = 0; i < n; i++) CHECK(in[indices[i]] == before && statuses[i].MPI_TAG == indices[i]);
        left -= n;
    }
    MPI_Waitsome(6, requests, &n, indices, statuses);
    CHECK(n == MPI_UNDEFINED);
    MPI_Waitany(6, requests, &index, statuses);
    CHECK(index == MPI_UNDEFINED);
    beat();
    say("all of %d", in[0]);
    return done("waitsome_set");
}
