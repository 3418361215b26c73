/* Pauses the tracing of a part of the run by MPI_Pcontrol; counts only what is outside that part. */
#include <mpi.h>

#include "count.h"

static void exchange(int times, int rank, int size)
{
    for (int i = 0; i < times; i++) {
        int in = -1, sum;
        MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, i, &in, 1, MPI_INT, (rank + size - 1) % size, i,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Allreduce(&in, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        CHECK(sum == size * (size - 1) / 2);
    }
}

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    exchange(10, rank, size);
    MPI_Pcontrol(0);
    count_on = 0;
    exchange(100, rank, size);
    count_on = 1;
    MPI_Pcontrol(1);
    exchange(5, rank, size);
    MPI_Finalize();
    count_print(rank);
    return 0;
}
