/* ns of MPI calls and of system calls, each the least of several rounds: on rank 0 a line for each, its name and the number.
 * calls [ROUNDS]; two ranks. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static int rank, zero;

static void size_of(void)
{
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
}

static void to_self(void)
{
    MPI_Request request;
    int sent = 1, received;
    MPI_Irecv(&received, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &request);
    MPI_Send(&sent, 1, MPI_INT, 0, 1, MPI_COMM_SELF);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void exchange(void)
{
    int sent = 1, received;
    MPI_Status status;
    MPI_Sendrecv(&sent, 1, MPI_INT, 0, 1, &received, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &status);
}

static void reduce_alone(void)
{
    double mine = rank, all;
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF);
}

static void ping_pong(void)
{
    long data = 0;
    if (rank == 0) {
        MPI_Send(&data, 8, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(&data, 8, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(&data, 8, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&data, 8, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
}

static void all_reduce(void)
{
    double mine = rank, all;
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void parent(void)
{
    syscall(SYS_getppid);
}

static void read_byte(void)
{
    char byte;
    if (read(zero, &byte, 1) != 1)
        MPI_Abort(MPI_COMM_WORLD, 1);
}

/* What one rank does alone is done by rank 0 alone; the other then waits without using the processor. */
static void measure(const char *name, void (*call)(void), int times, int rounds, int alone)
{
    double least = 1e9;
    for (int round = 0; round < rounds && (!alone || rank == 0); round++) {
        double start = MPI_Wtime();
        for (int i = 0; i < times; i++)
            call();
        double each = (MPI_Wtime() - start) / times * 1e9;
        if (each < least)
            least = each;
    }
    if (rank == 0)
        printf("%s %.2f\n", name, least);
    int done = rank == 0;
    MPI_Request request;
    if (rank == 0) {
        MPI_Send(&done, 1, MPI_INT, 1, 9, MPI_COMM_WORLD);
    } else {
        MPI_Irecv(&done, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, &request);
        for (int there = 0; !there; MPI_Test(&request, &there, MPI_STATUS_IGNORE))
            usleep(2000);
    }
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 9, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    zero = open("/dev/zero", O_RDONLY);
    if (size != 2 || zero < 0)
        MPI_Abort(MPI_COMM_WORLD, 2);
    measure("Comm_size", size_of, 1000000, rounds, 1);
    measure("to_self", to_self, 200000, rounds, 1);
    measure("exchange", exchange, 200000, rounds, 1);
    measure("reduce_alone", reduce_alone, 200000, rounds, 1);
    measure("getppid", parent, 300000, rounds, 1);
    measure("read", read_byte, 300000, rounds, 1);
    measure("ping_pong", ping_pong, 50000, rounds, 0);
    measure("Allreduce", all_reduce, 50000, rounds, 0);
    MPI_Finalize();
    return 0;
}
