/* Computes in two ways between barriers: on pages that are new, and on ones that are not.
 * pages [TIMES [PAGES]] */
#define _DEFAULT_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define PAGE 4096ul

static volatile double sum = 1.0;

static void arithmetic(long rounds)
{
    double x = sum;
    for (long i = 0; i < rounds; i++)
        x = x * 0.999 + 0.001;
    sum = x;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, times = argc > 1 ? atoi(argv[1]) : 100;
    unsigned long pages = argc > 2 ? strtoul(argv[2], NULL, 10) : 64;
    double one = 1.0, all;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < times; i++) {
        char *fresh = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (fresh == MAP_FAILED)
            MPI_Abort(MPI_COMM_WORLD, 1);
        madvise(fresh, pages * PAGE, MADV_NOHUGEPAGE);
        for (unsigned long page = 0; page < pages; page++)
            fresh[page * PAGE] = (char)page;
        MPI_Barrier(MPI_COMM_WORLD);
        munmap(fresh, pages * PAGE);
        arithmetic(50000);
        MPI_Allreduce(&one, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    if (rank == 0)
        printf("%g\n", all + sum * 0.0);
    MPI_Finalize();
    return 0;
}
