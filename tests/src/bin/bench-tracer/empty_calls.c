/* Times calls to a library that does nothing, in processor time: ns per call of MPI_Send, of MPI_Allreduce, and per pair
 * Irecv + Wait; then what two readings of the time stamp counter take, which every recorded call needs. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <x86intrin.h>

int MPI_Init(int *, char ***), MPI_Finalize(void);
int MPI_Send(const void *, int, int, int, int, int), MPI_Allreduce(const void *, void *, int, int, int, int);
int MPI_Irecv(void *, int, int, int, int, int, int *), MPI_Wait(int *, int *);

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

int main(int argc, char **argv)
{
    enum { INT = 0x4c000405, SUM = 0x58000003, WORLD = 0x44000000 };
    int data = 0, sum, request, calls = argc > 1 ? atoi(argv[1]) : 1000000;
    MPI_Init(&argc, &argv);
    for (int part = 0; part < 3; part++) {
        double start = now();
        for (int i = 0; i < calls; i++) {
            if (part == 0)
                MPI_Send(&data, 1, INT, 1, 7, WORLD);
            else if (part == 1)
                MPI_Allreduce(&data, &sum, 1, INT, SUM, WORLD);
            else {
                MPI_Irecv(&data, 1, INT, 1, 7, WORLD, &request);
                MPI_Wait(&request, (int *)1);
            }
        }
        printf("%.3f ", (now() - start) / calls);
    }
    unsigned long long sum_of_readings = 0;
    double start = now();
    for (int i = 0; i < calls; i++)
        sum_of_readings += __rdtsc() ^ __rdtsc();
    printf("%.3f\n", (now() - start) / calls + (double)(sum_of_readings == 1));
    return MPI_Finalize();
}
