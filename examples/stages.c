/* Two loops that have no communication in common: stages [ROUNDS] [ASSEMBLIES] [SOLUTIONS], any number of ranks.
 * A round assembles, ASSEMBLIES times: each rank evaluates a polynomial at its points, and exchanges the first and last
 * with its neighbours on a ring. Then it solves, SOLUTIONS times: relaxes the values towards their mean, which all ranks
 * have by MPI_Allreduce. The mean does not change but by rounding, and the values end close to it. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define POINTS (1 << 17)

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int size, rank;
    int rounds = argc > 1 ? atoi(argv[1]) : 1, assemblies = argc > 2 ? atoi(argv[2]) : 1000;
    int solutions = argc > 3 ? atoi(argv[3]) : 1000;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int left = (rank + size - 1) % size, right = (rank + 1) % size;
    double *values = malloc(POINTS * sizeof *values);
    if (!values)
        MPI_Abort(MPI_COMM_WORLD, 1);
    double mean = 0;
    for (int round = 0; round < rounds; round++) {
        for (int step = 0; step < assemblies; step++) {
            double ends[2], from[2];
            for (int i = 0; i < POINTS / 8; i++) {
                double x = (double)i / (POINTS / 8), sum = 0;
                for (int power = 0; power < 12; power++)
                    sum = sum * x + 1.0 / (power + 1 + step % 7);
                values[(size_t)i * 8 + (size_t)(step % 8)] = sum;
            }
            ends[0] = values[0];
            ends[1] = values[POINTS - 1];
            MPI_Sendrecv(&ends[0], 1, MPI_DOUBLE, left, 1, &from[1], 1, MPI_DOUBLE, right, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Sendrecv(&ends[1], 1, MPI_DOUBLE, right, 2, &from[0], 1, MPI_DOUBLE, left, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            values[0] = 0.5 * (values[0] + from[0]);
            values[POINTS - 1] = 0.5 * (values[POINTS - 1] + from[1]);
        }
        for (int step = 0; step < solutions; step++) {
            double sum = 0, all;
            for (int i = 0; i < POINTS; i++)
                sum += values[i];
            MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
            mean = all / POINTS / size;
            for (int i = 0; i < POINTS; i++)
                values[i] += 0.01 * (mean - values[i]);
        }
    }
    double worst = 0, most;
    for (int i = 0; i < POINTS; i++)
        worst = fmax(worst, fabs(values[i] - mean));
    MPI_Allreduce(&worst, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0)
        printf("stages: %s, mean %.6f, at most %.3g off\n", most < 0.5 ? "ok" : "WRONG", mean, most);
    free(values);
    MPI_Finalize();
    return most < 0.5 ? 0 : 1;
}
