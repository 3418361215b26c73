/* A master that gives tasks to whichever worker is free: master [TASKS [WAY]]. WAY says how it learns who that is:
   any, post (a receive from any source, blocking or posted), probe, poll, waitany, waitsome, or all in turn (the
   default). How long a task takes is not the same in every run. Results have the greatest tag, as libraries take theirs
   from the top. Prints the sum of all results, which does not depend on who did what, and a number that does: the order
   in which they came. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TASK = 1, TURN = 20 };
static const char *const WAYS[] = {"any", "post", "probe", "poll", "waitany", "waitsome"};
enum { ANY, POST, PROBE, POLL, WAITANY, WAITSOME, WAYS_ALL };
static int result_tag;

static double work(int task)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    double sum = 0;
    for (long i = 1, n = 10000 + now.tv_nsec / 64 % 32 * 500; i <= n; i++)
        sum += sin(i * 1e-3);
    return sum > 1e300 ? 0 : task % 7;
}

/* Takes one result or more of those that are due; one receive a worker is posted if pending is not null. */
static int collect(int way, int workers, MPI_Request *pending, double *inbox, double *results, int *from)
{
    MPI_Status status;
    int flag = 0, count = 1;
    switch (way) {
    case ANY:
        MPI_Recv(results, 1, MPI_DOUBLE, MPI_ANY_SOURCE, result_tag, MPI_COMM_WORLD, &status);
        break;
    case POST: {
        MPI_Request request;
        MPI_Irecv(results, 1, MPI_DOUBLE, MPI_ANY_SOURCE, result_tag, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, &status);
        break;
    }
    case PROBE:
    case POLL:
        if (way == PROBE)
            MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        while (way == POLL && !flag)
            MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &status);
        MPI_Recv(results, 1, MPI_DOUBLE, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, &status);
        break;
    default: {
        int *which = malloc(workers * sizeof *which);
        if (way == WAITANY)
            MPI_Waitany(workers, pending, which, MPI_STATUS_IGNORE);
        else
            MPI_Waitsome(workers, pending, &count, which, MPI_STATUSES_IGNORE);
        for (int i = 0; i < count; i++) {
            from[i] = which[i] + 1;
            results[i] = inbox[which[i]];
        }
        free(which);
        return count;
    }
    }
    from[0] = status.MPI_SOURCE;
    return 1;
}

static void master(int workers, int tasks, int only)
{
    MPI_Request *pending = malloc(workers * sizeof *pending);
    double *inbox = malloc(workers * sizeof *inbox), *results = malloc(workers * sizeof *results), sum = 0;
    int *from = malloc(workers * sizeof *from), given = 0;
    unsigned long order = 5381;
    for (int turn = 0; given < tasks; turn++) {
        int way = only < WAYS_ALL ? only : turn % WAYS_ALL, until = given + TURN * workers, due = 0;
        if (until > tasks || only < WAYS_ALL)
            until = tasks;
        for (int worker = 1; worker <= workers; worker++) {
            pending[worker - 1] = MPI_REQUEST_NULL;
            if (given == until)
                continue;
            if (way >= WAITANY)
                MPI_Irecv(inbox + worker - 1, 1, MPI_DOUBLE, worker, result_tag, MPI_COMM_WORLD, pending + worker - 1);
            MPI_Send(&given, 1, MPI_INT, worker, TASK, MPI_COMM_WORLD);
            given++;
            due++;
        }
        while (due > 0) {
            int count = collect(way, workers, pending, inbox, results, from);
            for (int i = 0; i < count; i++) {
                sum += results[i];
                order = order * 33 + from[i];
                due--;
                if (given == until)
                    continue;
                if (way >= WAITANY)
                    MPI_Irecv(inbox + from[i] - 1, 1, MPI_DOUBLE, from[i], result_tag, MPI_COMM_WORLD,
                              pending + from[i] - 1);
                MPI_Send(&given, 1, MPI_INT, from[i], TASK, MPI_COMM_WORLD);
                given++;
                due++;
            }
        }
    }
    given = -1;
    for (int worker = 1; worker <= workers; worker++)
        MPI_Send(&given, 1, MPI_INT, worker, TASK, MPI_COMM_WORLD);
    printf("sum %.0f order %lu\n", sum, order);
    free(pending), free(inbox), free(results), free(from);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int tasks = argc > 1 ? atoi(argv[1]) : 3000, rank, size, only = 0, found = 0, *greatest = NULL;
    const char *way = argc > 2 ? argv[2] : "all";
    while (only < WAYS_ALL && strcmp(way, WAYS[only]) != 0)
        only++;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &greatest, &found);
    result_tag = found ? *greatest : 32767;
    if (size < 2 || tasks < 1 || (only == WAYS_ALL && strcmp(way, "all") != 0)) {
        fprintf(stderr, "master: needs two ranks or more, a number of tasks, and a way that it knows\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (rank == 0)
        master(size - 1, tasks, only);
    for (int task = 0; rank > 0;) {
        MPI_Recv(&task, 1, MPI_INT, 0, TASK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (task < 0)
            break;
        double result = work(task);
        MPI_Send(&result, 1, MPI_DOUBLE, 0, result_tag, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
