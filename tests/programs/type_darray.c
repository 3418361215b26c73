// The distributed arrays of a process grid, block and cyclic, sent to rank 0 as plain numbers.
// ranks: 4
#include "state.h"

int main(void) {
    start();
    int all[2] = {6, 6}, ways[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC}, n, own[9], sum = 0;
    int arguments[2] = {MPI_DISTRIBUTE_DFLT_DARG, 2}, grid[2] = {2, 2}, matrix[36];
    MPI_Datatype part;
    MPI_Type_create_darray(4, rank, 2, all, ways, arguments, grid, MPI_ORDER_C, MPI_INT, &part);
    MPI_Type_commit(&part);
    for (int i = 0; i < 36; i++) matrix[i] = i;
    MPI_Type_size(part, &n);
    n /= (int)sizeof(int);
    for (int i = 0; i < 3; i++) {
        int in[12];
        MPI_Send(matrix, 1, part, rank, 0, MPI_COMM_WORLD);
        beat();
        MPI_Recv(in, 12, MPI_INT, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int k = 0; k < 9 && k < n; k++) own[k] = in[k];
        sum = 0;
        for (int k = 0; k < n; k++) sum += in[k];
        CHECK(total(MPI_COMM_WORLD, n) == 36 && total(MPI_COMM_WORLD, sum) == 35 * 18);
    }
    // Two rows of the grid take three rows each; columns 0, 1, 4, 5 go to the first, 2 and 3 to the second.
    CHECK(n == (rank % 2 ? 6 : 12) && own[0] == 18 * (rank / 2) + 2 * (rank % 2));
    MPI_Type_free(&part);
    beat();
    say("%d numbers, sum %d", n, sum);
    return done("type_darray");
}
