/* Rank 0 takes messages from anyone with any tag, and prints what it got in the order in which it got it:
 * `MATCH source tag count`; the others send 5 messages each. */
#include <mpi.h>

#include "count.h"

enum { EACH = 5, MOST = 8 };

int main(int argc, char **argv)
{
    int rank, size, data[MOST] = {0};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank > 0)
        for (int i = 0; i < EACH; i++)
            MPI_Send(data, i + 1, MPI_INT, 0, rank * 10 + i, MPI_COMM_WORLD);
    for (int i = 0; rank == 0 && i < EACH * (size - 1); i++) {
        MPI_Status status;
        MPI_Request request;
        int count;
        if (i % 2)
            MPI_Recv(data, MOST, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        else {
            MPI_Irecv(data, MOST, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
            MPI_Wait(&request, &status);
        }
        MPI_Get_count(&status, MPI_INT, &count);
        printf("MATCH %d %d %d\n", status.MPI_SOURCE, status.MPI_TAG, count);
    }
    MPI_Finalize();
    count_print(rank);
    return 0;
}
