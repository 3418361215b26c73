/* The last rank touches an address that is not mapped while the others wait for it. */
#include "fault.h"

int main(int argc, char **argv)
{
    int never, *volatile nowhere = (int *)8;
    begin(argc, argv);
    if (rank == size - 1)
        *nowhere = 1;
    MPI_Recv(&never, 1, MPI_INT, size - 1, 999, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return 0;
}
