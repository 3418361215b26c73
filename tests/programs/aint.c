// Addresses that MPI calculates, between cuts and in a datatype of absolute addresses.
#include "state.h"

int main(void) {
    start();
    int values[8], got[8], lengths[2] = {1, 1};
    MPI_Aint base, third, places[2];
    MPI_Datatype both;
    for (int i = 0; i < 8; i++)
        values[i] = 100 * rank + i, got[i] = -1;
    MPI_Get_address(values, &base);
    MPI_Get_address(&values[3], &third);
    beat();
    CHECK(MPI_Aint_diff(third, base) == 3 * sizeof(int));
    CHECK(MPI_Aint_add(base, 3 * sizeof(int)) == third);
    beat();
    places[0] = MPI_Aint_add(base, 0);
    places[1] = MPI_Aint_add(base, 5 * sizeof(int));
    MPI_Type_create_hindexed(2, lengths, places, MPI_INT, &both);
    MPI_Type_commit(&both);
    beat();
    MPI_Sendrecv(MPI_BOTTOM, 1, both, after, 1, got, 2, MPI_INT, before, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(got[0] == 100 * before && got[1] == 100 * before + 5);
    beat();
    MPI_Type_free(&both);
    say("%d %d", got[0], got[1]);
    return done("aint");
}
