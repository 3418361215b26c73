/* Conjugate gradient on the matrix of a five-point grid, rows dealt out to the ranks: cg [EDGE] [ITERATIONS].
 * Sendrecv brings the border rows, Allreduce the dot products. The right-hand side is the matrix times a known vector,
 * so the error is known at the end and must have fallen. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int edge, rows, rank, size;

static double *vector(void)
{
    double *v = calloc((size_t)(rows + 2) * (size_t)edge, sizeof *v);
    if (!v)
        MPI_Abort(MPI_COMM_WORLD, 1);
    return v;
}

static double dot(const double *a, const double *b)
{
    double mine = 0, all;
    for (int i = edge; i < (rows + 1) * edge; i++)
        mine += a[i] * b[i];
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

static void multiply(double *x, double *y)
{
    int up = rank > 0 ? rank - 1 : MPI_PROC_NULL, down = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
    MPI_Sendrecv(x + edge, edge, MPI_DOUBLE, up, 1, x + (rows + 1) * edge, edge, MPI_DOUBLE, down, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv(x + rows * edge, edge, MPI_DOUBLE, down, 2, x, edge, MPI_DOUBLE, up, 2, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    for (int i = 1; i <= rows; i++)
        for (int j = 0; j < edge; j++) {
            const double *p = x + i * edge + j;
            double sum = 4.001 * p[0] - p[-edge] - p[edge];
            if (j > 0)
                sum -= p[-1];
            if (j < edge - 1)
                sum -= p[1];
            y[i * edge + j] = sum;
        }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    edge = argc > 1 ? atoi(argv[1]) : 256;
    int iterations = argc > 2 ? atoi(argv[2]) : 100;
    if (edge < 1 || edge % size || iterations < 1) {
        fprintf(stderr, "cg: the edge must be a multiple of the number of ranks\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    rows = edge / size;
    double *truth = vector(), *x = vector(), *r = vector(), *p = vector(), *q = vector();
    for (int i = edge; i < (rows + 1) * edge; i++)
        truth[i] = sin(0.01 * (i + rank * rows * edge));
    multiply(truth, r);
    for (int i = edge; i < (rows + 1) * edge; i++)
        p[i] = r[i];
    double before = sqrt(dot(truth, truth)), rho = dot(r, r);
    for (int k = 0; k < iterations && rho > 1e-28; k++) {
        multiply(p, q);
        double alpha = rho / dot(p, q);
        for (int i = edge; i < (rows + 1) * edge; i++) {
            x[i] += alpha * p[i];
            r[i] -= alpha * q[i];
        }
        double next = dot(r, r), beta = next / rho;
        rho = next;
        for (int i = edge; i < (rows + 1) * edge; i++)
            p[i] = r[i] + beta * p[i];
    }
    for (int i = edge; i < (rows + 1) * edge; i++)
        truth[i] -= x[i];
    double after = sqrt(dot(truth, truth));
    if (rank == 0)
        printf("cg: residual %.3e, error %.3e of %.3e: %s\n", sqrt(rho), after, before, after < before ? "ok" : "wrong");
    MPI_Finalize();
    return after < before ? 0 : 1;
}
