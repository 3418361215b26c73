/* Two-dimensional heat flow by Jacobi's method: stencil [EDGE] [STEPS], any number of ranks.
 * Each step exchanges halos with up to four neighbours; every 10th adds up the change, every 200th checks the field and
 * rank 0 prints a line. The boundary is 1 at the left and 0 elsewhere, so every value must stay between 0 and 1. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int rows, columns;
#define AT(field, i, j) ((field)[(size_t)(i) * (size_t)(columns + 2) + (size_t)(j)])

static double step(const double *restrict now, double *restrict next)
{
    double change = 0;
    for (int i = 1; i <= rows; i++)
        for (int j = 1; j <= columns; j++) {
            double value = 0.25 * (AT(now, i - 1, j) + AT(now, i + 1, j) + AT(now, i, j - 1) + AT(now, i, j + 1));
            double by = value - AT(now, i, j);
            change += by * by;
            AT(next, i, j) = value;
        }
    return change;
}

static void exchange(double *field, MPI_Comm grid, MPI_Datatype column)
{
    int up, down, left, right;
    MPI_Request request[8];
    MPI_Cart_shift(grid, 0, 1, &up, &down);
    MPI_Cart_shift(grid, 1, 1, &left, &right);
    MPI_Irecv(&AT(field, 0, 1), columns, MPI_DOUBLE, up, 0, grid, &request[0]);
    MPI_Irecv(&AT(field, rows + 1, 1), columns, MPI_DOUBLE, down, 1, grid, &request[1]);
    MPI_Irecv(&AT(field, 1, 0), 1, column, left, 2, grid, &request[2]);
    MPI_Irecv(&AT(field, 1, columns + 1), 1, column, right, 3, grid, &request[3]);
    MPI_Isend(&AT(field, rows, 1), columns, MPI_DOUBLE, down, 0, grid, &request[4]);
    MPI_Isend(&AT(field, 1, 1), columns, MPI_DOUBLE, up, 1, grid, &request[5]);
    MPI_Isend(&AT(field, 1, columns), 1, column, right, 2, grid, &request[6]);
    MPI_Isend(&AT(field, 1, 1), 1, column, left, 3, grid, &request[7]);
    MPI_Waitall(8, request, MPI_STATUSES_IGNORE);
}

static double mean(const double *field, int edge, MPI_Comm grid)
{
    double sum[2] = {0, 0}, all[2];
    for (int i = 1; i <= rows; i++)
        for (int j = 1; j <= columns; j++) {
            sum[0] += AT(field, i, j);
            sum[1] += !(AT(field, i, j) >= 0 && AT(field, i, j) <= 1);
        }
    MPI_Allreduce(sum, all, 2, MPI_DOUBLE, MPI_SUM, grid);
    if (all[1] != 0) {
        fprintf(stderr, "stencil: %g values are out of bounds\n", all[1]);
        MPI_Abort(grid, 1);
    }
    return all[0] / edge / edge;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int edge = argc > 1 ? atoi(argv[1]) : 256, steps = argc > 2 ? atoi(argv[2]) : 1000;
    int size, rank, shape[2] = {0, 0}, around[2] = {0, 0}, place[2];
    MPI_Comm grid;
    MPI_Datatype column;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Dims_create(size, 2, shape);
    MPI_Cart_create(MPI_COMM_WORLD, 2, shape, around, 0, &grid);
    MPI_Comm_rank(grid, &rank);
    MPI_Cart_coords(grid, rank, 2, place);
    if (edge < 1 || steps < 0 || edge % shape[0] || edge % shape[1]) {
        if (rank == 0)
            fprintf(stderr, "stencil: the edge must be a multiple of %d and %d\n", shape[0], shape[1]);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    rows = edge / shape[0];
    columns = edge / shape[1];
    MPI_Type_vector(rows, 1, columns + 2, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    size_t cells = (size_t)(rows + 2) * (size_t)(columns + 2);
    double *now = calloc(cells, sizeof *now), *next = calloc(cells, sizeof *next);
    if (!now || !next)
        MPI_Abort(MPI_COMM_WORLD, 1);
    if (place[1] == 0)
        for (int i = 1; i <= rows; i++)
            AT(now, i, 0) = AT(next, i, 0) = 1;

    double change = 0, last = 0;
    for (int k = 1; k <= steps; k++) {
        exchange(now, grid, column);
        double mine = step(now, next);
        double *swap = now;
        now = next;
        next = swap;
        if (k % 10 == 0)
            MPI_Allreduce(&mine, &change, 1, MPI_DOUBLE, MPI_SUM, grid);
        if (k % 200 == 0) {
            double average = mean(now, edge, grid);
            if (average < last)
                MPI_Abort(grid, 1);
            last = average;
            if (rank == 0)
                printf("step %d: mean %.9f, change %.3e\n", k, average, sqrt(change));
        }
    }
    if (rank == 0)
        printf("stencil: ok\n");
    free(now);
    free(next);
    MPI_Type_free(&column);
    MPI_Comm_free(&grid);
    MPI_Finalize();
    return 0;
}
