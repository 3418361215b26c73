/* Heat flow on a square plate until it is steady, the program of Mendes' paper on trace transformation:
 * heat [EDGE] [STEPS], any number of ranks. Each rank has a block of rows. A step computes the rows at the block's edges
 * (IterEdge), sends them to the neighbours (Isend), computes the rows between (Iterate), receives the neighbours' (Recv),
 * and looks whether the plate is steady (Converged): rank 0 gathers what each rank found and tells all (Send, Recv).
 * The upper boundary is at 100, the others at 0, so every value must stay between those.
 * Plates lie in huge pages where the machine has them: with small ones a run takes up to a third longer when its pages
 * happen to share places in the cache, and no prediction can know that. Loops begin where a line of the cache does: the
 * same loop elsewhere took 17 % longer on one processor, and where it lies differs between builds for two MPIs. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("align-loops=64")
#endif
#define _DEFAULT_SOURCE
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define STEADY 1e-9
static int edge, rows, up, down;
#define AT(plate, i, j) ((plate)[(size_t)(i) * (size_t)(edge + 2) + (size_t)(j)])

/* A plate of zeros. */
static double *plate(size_t points)
{
    const size_t huge = (size_t)1 << 21, bytes = (points * sizeof(double) + huge - 1) / huge * huge;
    void *memory;
    if (posix_memalign(&memory, huge, bytes))
        return NULL;
#ifdef MADV_HUGEPAGE
    madvise(memory, bytes, MADV_HUGEPAGE);
#endif
    return memset(memory, 0, bytes);
}

static void row(const double *restrict now, double *restrict next, int i)
{
    for (int j = 1; j <= edge; j++)
        AT(next, i, j) = 0.25 * (AT(now, i - 1, j) + AT(now, i + 1, j) + AT(now, i, j - 1) + AT(now, i, j + 1));
}

static void IterEdge(const double *now, double *next)
{
    row(now, next, 1);
    if (rows > 1)
        row(now, next, rows);
}

static void Iterate(const double *now, double *next)
{
    for (int i = 2; i < rows; i++)
        row(now, next, i);
}

/* Looks at points from the top until one is found that still changes. */
static int Converged(const double *now, const double *next)
{
    for (int i = 1; i <= rows; i++)
        for (int j = 1; j <= edge; j++)
            if (fabs(AT(next, i, j) - AT(now, i, j)) > STEADY)
                return 0;
    return 1;
}

static int everywhere(int steady, int rank, int size)
{
    int other;
    if (rank != 0) {
        MPI_Send(&steady, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
        MPI_Recv(&steady, 1, MPI_INT, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return steady;
    }
    for (int from = 1; from < size; from++) {
        MPI_Recv(&other, 1, MPI_INT, from, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        steady &= other;
    }
    for (int to = 1; to < size; to++)
        MPI_Send(&steady, 1, MPI_INT, to, 4, MPI_COMM_WORLD);
    return steady;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int size, rank, steps = argc > 2 ? atoi(argv[2]) : 2000, step = 0;
    edge = argc > 1 ? atoi(argv[1]) : 512;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (edge < 1 || steps < 0 || edge % size) {
        if (rank == 0)
            fprintf(stderr, "heat: the edge must be a multiple of %d\n", size);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    rows = edge / size;
    up = rank > 0 ? rank - 1 : MPI_PROC_NULL;
    down = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
    size_t points = (size_t)(rows + 2) * (size_t)(edge + 2);
    double *now = plate(points), *next = plate(points);
    if (!now || !next)
        MPI_Abort(MPI_COMM_WORLD, 1);
    if (rank == 0)
        for (int j = 0; j <= edge + 1; j++)
            AT(now, 0, j) = AT(next, 0, j) = 100;

    for (int steady = 0; step < steps && !steady; step++) {
        MPI_Request sent[2];
        IterEdge(now, next);
        MPI_Isend(&AT(next, 1, 1), edge, MPI_DOUBLE, up, 1, MPI_COMM_WORLD, &sent[0]);
        MPI_Isend(&AT(next, rows, 1), edge, MPI_DOUBLE, down, 2, MPI_COMM_WORLD, &sent[1]);
        Iterate(now, next);
        MPI_Recv(&AT(next, rows + 1, 1), edge, MPI_DOUBLE, down, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(&AT(next, 0, 1), edge, MPI_DOUBLE, up, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Waitall(2, sent, MPI_STATUSES_IGNORE);
        steady = everywhere(Converged(now, next), rank, size);
        double *swap = now;
        now = next;
        next = swap;
    }

    double sum = 0, total = 0;
    for (int i = 1; i <= rows; i++)
        for (int j = 1; j <= edge; j++) {
            if (!(AT(now, i, j) >= 0 && AT(now, i, j) <= 100)) {
                fprintf(stderr, "heat: %g is out of bounds\n", AT(now, i, j));
                MPI_Abort(MPI_COMM_WORLD, 1);
            }
            sum += AT(now, i, j);
        }
    MPI_Reduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("heat: ok, mean %.9f after %d steps\n", total / edge / edge, step);
    free(now);
    free(next);
    MPI_Finalize();
    return 0;
}
