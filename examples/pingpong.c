/* Eight bytes to and fro between two ranks: pingpong [ROUND-TRIPS]. Prints half of a round trip in ns. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    long trips = argc > 1 ? atol(argv[1]) : 100000, warm = trips / 10;
    int rank, size;
    long data = 0;
    double start = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != 2 || trips < 1) {
        fprintf(stderr, "pingpong: needs two ranks and a number of round trips\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (long i = -warm; i < trips; i++) {
        if (i == 0)
            start = MPI_Wtime();
        if (rank == 0) {
            MPI_Send(&data, 8, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(&data, 8, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(&data, 8, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            data++;
            MPI_Send(&data, 8, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        }
    }
    double half = (MPI_Wtime() - start) / (double)trips / 2 * 1e9;
    if (rank == 0)
        printf("half round trip %.1f ns\n", half);
    MPI_Finalize();
    return data == trips + warm ? 0 : 1;
}
