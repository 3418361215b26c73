// Communicators whose parents are gone.
// ranks: 4
#include "state.h"

int main(void) {
    start();
    MPI_Comm copy, half, grid, row;
    int dims[2] = {2, 1}, periods[2] = {0, 0}, keep[2] = {1, 0};
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_split(copy, rank / 2, 0, &half);
    MPI_Comm_free(&copy);
    for (int i = 0; i < 2; i++) ring(half);
    MPI_Cart_create(half, 2, dims, periods, 0, &grid);
    MPI_Comm_free(&half);
    ring(grid);
    MPI_Cart_sub(grid, keep, &row);
    MPI_Comm_free(&grid);
    beat();
    for (int i = 0; i < 3; i++) ring(row);
    CHECK(total(row, rank) == (rank / 2 ? 5 : 1));
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    ring(copy);
    MPI_Comm_free(&row);
    ring(copy);
    MPI_Comm_free(&copy);
    say("orphans");
    return done("comm_freed_parent");
}
