/* Gaussian elimination of a dense system: elimination [ROWS], any number of ranks, rows dealt out in turn. Each step sends
 * the pivot's row to all and takes it off the rows below, so a step takes less and less time: (ROWS - step)^2. The matrix is
 * dominated by its diagonal, so that no pivot is searched for; the solution must be 1 everywhere, or it exits with 1. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, ranks, order;
static double *rows;

/* Row `i` of the system, the right side last; it lies on rank i % ranks. */
static double *row_of(int i)
{
    return rows + (size_t)(i / ranks) * (size_t)(order + 1);
}

static void fill(void)
{
    for (int i = rank; i < order; i += ranks) {
        double *row = row_of(i), sum = 0;
        unsigned state = (unsigned)i * 2654435761u + 1;
        for (int j = 0; j < order; j++) {
            state = state * 1664525u + 1013904223u;
            row[j] = (state >> 8) / 16777216.0 + (i == j ? order : 0);
            sum += row[j];
        }
        row[order] = sum;
    }
}

static void eliminate(double *pivot)
{
    for (int step = 0; step < order; step++) {
        int owner = step % ranks, length = order + 1 - step;
        double *from = owner == rank ? row_of(step) : pivot;
        MPI_Bcast(from + step, length, MPI_DOUBLE, owner, MPI_COMM_WORLD);
        int first = step + 1 + (rank - (step + 1) % ranks + ranks) % ranks;
        for (int i = first; i < order; i += ranks) {
            double *row = row_of(i), factor = row[step] / from[step];
            for (int j = step; j <= order; j++)
                row[j] -= factor * from[j];
        }
    }
}

/* The largest distance of the solution from 1. */
static double substitute(double *solution)
{
    double worst = 0;
    for (int i = order - 1; i >= 0; i--) {
        if (i % ranks == rank) {
            double *row = row_of(i), left = row[order];
            for (int j = i + 1; j < order; j++)
                left -= row[j] * solution[j];
            solution[i] = left / row[i];
        }
        MPI_Bcast(&solution[i], 1, MPI_DOUBLE, i % ranks, MPI_COMM_WORLD);
        worst = fmax(worst, fabs(solution[i] - 1));
    }
    return worst;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    order = argc > 1 ? atoi(argv[1]) : 2000;
    size_t mine = (size_t)(order / ranks + 1) * (size_t)(order + 1);
    rows = malloc(mine * sizeof *rows);
    double *one = malloc((size_t)(order + 1) * sizeof *one);
    if (order < 1 || !rows || !one)
        MPI_Abort(MPI_COMM_WORLD, 2);
    fill();
    eliminate(one);
    double off = substitute(one);
    if (rank == 0)
        printf("elimination: %d rows, the solution is off by %.1e\n", order, off);
    free(one);
    free(rows);
    MPI_Finalize();
    return off < 1e-9 ? 0 : 1;
}
