// Parts of arrays in Fortran's order, in flight: a subarray, which is one in C's order with its dimensions turned round, and
// a distributed array.
// ranks: 4
#include "state.h"

int main(void) {
    start();
    enum { ROWS = 4, COLUMNS = 6, ALL = ROWS * COLUMNS };
    int fortran[2] = {COLUMNS, ROWS}, few[2] = {3, 2}, at[2] = {2, 1};
    int c[2] = {ROWS, COLUMNS}, few_c[2] = {2, 3}, at_c[2] = {1, 2};
    int ways[2] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK}, each[2] = {2, MPI_DISTRIBUTE_DFLT_DARG};
    int grid[2] = {2, 2};
    int array[ALL], in[ALL], n, sum = 0;
    MPI_Datatype parts[3];
    MPI_Type_create_subarray(2, fortran, few, at, MPI_ORDER_FORTRAN, MPI_INT, &parts[0]);
    MPI_Type_create_subarray(2, c, few_c, at_c, MPI_ORDER_C, MPI_INT, &parts[1]);
    MPI_Type_create_darray(4, rank, 2, fortran, ways, each, grid, MPI_ORDER_FORTRAN, MPI_INT, &parts[2]);
    for (int i = 0; i < 3; i++) MPI_Type_commit(&parts[i]);
    for (int i = 0; i < ALL; i++) array[i] = i;
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < 2; i++) {
            MPI_Send(array, 1, parts[i], after, i, MPI_COMM_WORLD);
            beat();
            MPI_Recv(in, ALL, MPI_INT, before, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (int k = 0; k < 6; k++) CHECK(in[k] == (1 + k / 3) * COLUMNS + 2 + k % 3);
        }
        MPI_Send(array, 1, parts[2], rank, 2, MPI_COMM_WORLD);
        beat();
        MPI_Type_size(parts[2], &n);
        n /= (int)sizeof(int);
        MPI_Recv(in, ALL, MPI_INT, rank, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        // Columns 0, 1, 4 and 5 go to the first half of the grid, 2 and 3 to the second; of the rows each rank has two.
        CHECK(n == (rank < 2 ? 8 : 4) && in[0] == 2 * (rank / 2) + 2 * COLUMNS * (rank % 2));
        for (int k = sum = 0; k < n; k++) sum += in[k];
        CHECK(total(MPI_COMM_WORLD, sum) == ALL * (ALL - 1) / 2);
    }
    for (int i = 0; i < 3; i++) MPI_Type_free(&parts[i]);
    beat();
    say("%d numbers, sum %d", n, sum);
    return done("type_order_fortran");
}
