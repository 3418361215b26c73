// Communicators from groups, by all and by the group alone.
// ranks: 4
#include "state.h"

int main(void) {
    start();
    MPI_Group world, odd, low;
    MPI_Comm odds, lows;
    int odd_ranks[2] = {3, 1}, range[1][3] = {{0, 2, 1}}, own;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 2, odd_ranks, &odd);
    MPI_Group_range_incl(world, 1, range, &low);
    MPI_Comm_create(MPI_COMM_WORLD, odd, &odds);
    beat();
    lows = MPI_COMM_NULL;
    if (rank < 3) MPI_Comm_create_group(MPI_COMM_WORLD, low, 17, &lows);
    beat();
    CHECK((odds == MPI_COMM_NULL) == (rank % 2 == 0));
    for (int i = 0; i < 2; i++) {
        if (rank % 2) ring(odds);
        if (rank < 3) ring(lows);
    }
    if (rank % 2) {
        MPI_Comm_rank(odds, &own);
        CHECK(own == (rank == 3 ? 0 : 1) && total(odds, rank) == 4);
        MPI_Comm_free(&odds);
    }
    beat();
    if (rank < 3) {
        CHECK(total(lows, rank) == 3);
        MPI_Comm_free(&lows);
    }
    MPI_Group_free(&odd);
    MPI_Group_free(&low);
    MPI_Group_free(&world);
    beat();
    say("of groups");
    return done("comm_create");
}
