// Persistent collectives that some ranks have freed at a cut and others not yet; more follow on the same communicator.
// mpi: 4
#include "state.h"

int main(void) {
    start();
    for (int i = 0; i < 4; i++) {
        int own = rank + i, all = -1, product = -1, root = rank == i % size ? 7 * i : -1;
        MPI_Request sum, cast, other;
        MPI_Allreduce_init(&own, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &sum);
        MPI_Bcast_init(&root, 1, MPI_INT, i % size, MPI_COMM_WORLD, MPI_INFO_NULL, &cast);
        MPI_Start(&sum);
        MPI_Wait(&sum, MPI_STATUS_IGNORE);
        CHECK(all == size * (size - 1) / 2 + size * i);
        int first = rank == i % size;
        if (first) MPI_Request_free(&sum);
        beat();
        MPI_Start(&cast);
        MPI_Wait(&cast, MPI_STATUS_IGNORE);
        CHECK(root == 7 * i);
        beat();
        if (!first) MPI_Request_free(&sum);
        CHECK(sum == MPI_REQUEST_NULL);
        MPI_Iallreduce(&own, &product, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &other);
        MPI_Wait(&other, MPI_STATUS_IGNORE);
        CHECK(product == size - 1 + i);
        MPI_Request_free(&cast);
    }
    say("through");
    return done("persistent_freed");
}
