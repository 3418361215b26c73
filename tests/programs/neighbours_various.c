// Collectives between neighbours with counts of their own, and pending ones.
#include "state.h"

int main(void) {
    start();
    int periodic = 1, counts[2] = {1, 2}, places[2] = {0, 1}, to[3], from[3], gathered[4];
    int all[2] = {2, 2}, wide[2] = {0, 2}, ints[2] = {1, 1}, left[2], right[2], pending_to[3], pending_from[3];
    MPI_Aint bytes[2] = {0, sizeof(int)};
    MPI_Datatype types[2] = {MPI_INT, MPI_INT};
    MPI_Comm line;
    MPI_Request requests[3];
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &line);
    beat();
    for (int i = 0; i < 3; i++) {
        // One number to the left, two to the right: one comes from the right, two from the left.
        int received[2] = {2, 1}, at[2] = {0, 2}, own[2] = {1000 * i + rank, 2000 * i + rank};
        for (int k = 0; k < 3; k++) to[k] = pending_to[k] = 100 * i + 10 * rank + k;
        MPI_Neighbor_alltoallv(to, counts, places, MPI_INT, from, received, at, MPI_INT, line);
        CHECK(from[0] == 100 * i + 10 * before + 1 && from[1] == from[0] + 1 && from[2] == 100 * i + 10 * after);
        beat();
        MPI_Neighbor_allgatherv(own, 2, MPI_INT, gathered, all, wide, MPI_INT, line);
        CHECK(gathered[0] == 1000 * i + before && gathered[1] == 2000 * i + before && gathered[2] == 1000 * i + after);
        MPI_Neighbor_alltoallw(own, ints, bytes, types, left, ints, bytes, types, line);
        CHECK(left[0] == 2000 * i + before && left[1] == 1000 * i + after);
        MPI_Ineighbor_alltoallv(pending_to, counts, places, MPI_INT, pending_from, received, at, MPI_INT, line,
                                &requests[0]);
        MPI_Ineighbor_allgatherv(own, 2, MPI_INT, gathered, all, wide, MPI_INT, line, &requests[1]);
        MPI_Ineighbor_alltoallw(own, ints, bytes, types, right, ints, bytes, types, line, &requests[2]);
        beat();
        MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
        CHECK(pending_from[0] == from[0] && pending_from[1] == from[1] && pending_from[2] == from[2]);
        CHECK(right[0] == left[0] && right[1] == left[1] && gathered[3] == 2000 * i + after);
        beat();
    }
    MPI_Comm_free(&line);
    beat();
    say("through");
    return done("neighbours_various");
}
