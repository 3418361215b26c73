/* MPI_THREAD_MULTIPLE: three threads a rank, each with a partner thread at the other rank: threads [ROUNDS], two ranks. */
#include <mpi.h>
#include <pthread.h>

#include "count.h"

enum { THREADS = 3 };

static int rank, rounds;

static void *exchange(void *argument)
{
    int tag = *(int *)argument, other = 1 - rank;
    for (int i = 0; i < rounds; i++) {
        int out = rank * 1000000 + tag * 1000 + i, in = -1;
        MPI_Request request[2];
        MPI_Irecv(&in, 1, MPI_INT, other, tag, MPI_COMM_WORLD, &request[0]);
        MPI_Isend(&out, 1, MPI_INT, other, tag, MPI_COMM_WORLD, &request[1]);
        if (tag == 0)
            MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
        else {
            MPI_Wait(&request[0], MPI_STATUS_IGNORE);
            MPI_Wait(&request[1], MPI_STATUS_IGNORE);
        }
        CHECK(in == other * 1000000 + tag * 1000 + i);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int provided, size, tags[THREADS];
    pthread_t threads[THREADS];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    rounds = argc > 1 ? atoi(argv[1]) : 100;
    CHECK(provided == MPI_THREAD_MULTIPLE && size == 2);
    for (int i = 0; i < THREADS; i++) {
        tags[i] = i;
        pthread_create(&threads[i], NULL, exchange, &tags[i]);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    count_print(rank);
    return 0;
}
