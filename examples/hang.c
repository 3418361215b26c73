/* The last rank prints `PID rank pid` and sleeps, to be killed; the others wait for a message that never comes. */
#include "fault.h"

int main(int argc, char **argv)
{
    int never;
    begin(argc, argv);
    if (rank == size - 1) {
        printf("PID %d %ld\n", rank, (long)getpid());
        fflush(stdout);
        for (;;)
            pause();
    }
    MPI_Recv(&never, 1, MPI_INT, size - 1, 999, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return 0;
}
