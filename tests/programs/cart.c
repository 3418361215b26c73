// A Cartesian grid with its coordinates and shifts, and its rows and columns.
// ranks: 4
#include "state.h"

int main(void) {
    start();
    MPI_Comm grid, row, column;
    int dims[2] = {0, 0}, periods[2] = {1, 0}, back[2], wrap[2], at[2], n, from, to, in = -5, keep[2];
    MPI_Dims_create(size, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
    keep[0] = 0, keep[1] = 1;
    MPI_Cart_sub(grid, keep, &row);
    keep[0] = 1, keep[1] = 0;
    MPI_Cart_sub(grid, keep, &column);
    for (int i = 0; i < 3; i++) {
        beat();
        MPI_Cartdim_get(grid, &n);
        MPI_Cart_get(grid, 2, back, wrap, at);
        CHECK(n == 2 && back[0] == 2 && back[1] == 2 && wrap[0] && !wrap[1] && at[0] == rank / 2 && at[1] == rank % 2);
        MPI_Cart_shift(grid, i % 2, 1, &from, &to);
        MPI_Sendrecv(&rank, 1, MPI_INT, to, 1, &in, 1, MPI_INT, from, 1, grid, MPI_STATUS_IGNORE);
        CHECK(from == MPI_PROC_NULL || in == from);
        ring(i % 2 ? row : column);
    }
    MPI_Cart_rank(grid, at, &n);
    CHECK(n == rank);
    MPI_Cart_coords(row, 1, 1, at);
    MPI_Topo_test(column, &to);
    CHECK(at[0] == 1 && to == MPI_CART && total(row, rank) == 4 * (rank / 2) + 1 && total(column, rank) == 2 * (rank % 2) + 2);
    MPI_Comm_free(&row);
    MPI_Comm_free(&column);
    MPI_Comm_free(&grid);
    beat();
    say("at %d in the row", rank % 2);
    return done("cart");
}
