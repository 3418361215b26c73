// Communicators by Comm_split, ranks turned round in them, some in none; split again.
// ranks: 4
#include "state.h"

int main(void) {
    start();
    MPI_Comm half, turned, few;
    int own, n;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Comm_split(MPI_COMM_WORLD, 7, -rank, &turned);
    MPI_Comm_split(turned, rank == 0 ? MPI_UNDEFINED : 0, rank, &few);
    for (int i = 0; i < 2; i++) ring(half);
    MPI_Comm_rank(turned, &own);
    CHECK(own == size - 1 - rank);
    ring(turned);
    CHECK((few == MPI_COMM_NULL) == (rank == 0));
    CHECK(total(half, rank) == (rank % 2 ? 4 : 2));
    if (few != MPI_COMM_NULL) {
        MPI_Comm_size(few, &n);
        CHECK(n == size - 1 && total(few, rank) == 6);
        MPI_Comm_free(&few);
    }
    beat();
    CHECK(total(turned, own) == 6);
    MPI_Comm_free(&half);
    ring(turned);
    MPI_Comm_free(&turned);
    beat();
    say("was %d", own);
    return done("comm_split");
}
