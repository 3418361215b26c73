/* Work that gives rise to other work elsewhere: gossip [STEPS]. In each step every rank has tasks of its own, and tells
   others of some of them: of which, and of how many, is not the same in any run. Messages are taken whenever there are
   some between two tasks; a step ends once all that was sent is taken. As libraries do, it takes its tag from the top,
   asks for a datatype by precision, and finishes in MPI_Finalize: functions that delete attributes say how many messages
   there were in all. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { TASKS = 20, BYTES = 512 };

static double inbox[BYTES / 8];
static int told_tag;

static void task(void)
{
    double sum = 0;
    for (int i = 1; i <= 4000; i++)
        sum += sin(i * 1e-3);
    inbox[0] = sum;
}

/* Takes a message if there is one, or waits for it. */
static int take(int wait)
{
    int flag = 1;
    if (!wait)
        MPI_Iprobe(MPI_ANY_SOURCE, told_tag, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    if (flag)
        MPI_Recv(inbox, BYTES, MPI_BYTE, MPI_ANY_SOURCE, told_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return flag;
}

static int finish(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)extra;
    if (value)
        printf("messages %ld\n", *(long *)value);
    return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
    int rank, size, key, flag, *bound;
    MPI_Datatype real;
    long steps = argc > 1 ? atol(argv[1]) : 1000;
    static long messages[2];
    static const double news[BYTES / 8];
    struct timespec now;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &bound, &flag);
    told_tag = *bound;
    MPI_Type_create_f90_real(6, 30, &real);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, finish, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_WORLD, key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, rank ? NULL : messages);
    clock_gettime(CLOCK_REALTIME, &now);
    unsigned state = (unsigned)now.tv_nsec + rank * 7919u;
    int *told = malloc(size * sizeof *told);
    MPI_Request *requests = malloc(TASKS * sizeof *requests);
    for (long step = 0; step < steps; step++) {
        int sent = 0, had = 0, due;
        for (int to = 0; to < size; to++)
            told[to] = 0;
        for (int i = 0; i < TASKS; i++) {
            task();
            state = state * 1664525u + 1013904223u;
            if (size > 1 && state >> 30) {
                int to = (rank + 1 + (state >> 8) % (size - 1)) % size;
                MPI_Isend(news, BYTES, MPI_BYTE, to, told_tag, MPI_COMM_WORLD, &requests[sent++]);
                told[to]++;
            }
            had += take(0);
        }
        MPI_Reduce_scatter_block(told, &due, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        while (had < due)
            had += take(1);
        MPI_Waitall(sent, requests, MPI_STATUSES_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
        messages[0] += sent;
        messages[1] += had;
    }
    MPI_Allreduce(MPI_IN_PLACE, messages, 2, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    free(told);
    free(requests);
    MPI_Finalize();
    return messages[0] != messages[1];
}
