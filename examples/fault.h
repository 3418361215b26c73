/* The common beginning of the programs that end badly: some messages around a ring, then the counts so far. */
#ifndef FAULT_H
#define FAULT_H

#include <mpi.h>

#include "count.h"

enum { BEFORE = 50 };

static int rank, size;

static void begin(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < BEFORE; i++) {
        int in = -1;
        MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, i, &in, 1, MPI_INT, (rank + size - 1) % size, i,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(in == (rank + size - 1) % size);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    count_print(rank);
}

#endif
