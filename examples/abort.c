/* The last rank calls MPI_Abort while the others wait for a message that never comes. */
#include "fault.h"

int main(int argc, char **argv)
{
    int never;
    begin(argc, argv);
    if (rank == size - 1)
        MPI_Abort(MPI_COMM_WORLD, 3);
    MPI_Recv(&never, 1, MPI_INT, size - 1, 999, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return 0;
}
