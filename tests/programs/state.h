/* What the programs of this folder share. Each is about one kind of state that a program can be in when it is cut: it gets
 * into that state, communicates (after each event it may be cut and go on somewhere else), and checks that all is as it
 * was. What it has to say is kept to the end, when rank 0 prints it, rank by rank. A wrong result is exit code 1. */
#ifndef STATE_H
#define STATE_H

#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__GNUC__)
#define MAYBE static __attribute__((unused))
#else
#define MAYBE static
#endif

/* This rank, ranks in all, and the neighbours in a ring. */
MAYBE int rank, size, after, before;
MAYBE char told[1024];

MAYBE void wrong(const char *file, int line, const char *what) {
    fprintf(stderr, "%s:%d: rank %d: wrong: %s\n", file, line, rank, what);
    fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

#define CHECK(condition) ((condition) ? (void)0 : wrong(__FILE__, __LINE__, #condition))

MAYBE void started(void) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    after = (rank + 1) % size;
    before = (rank + size - 1) % size;
}

MAYBE void start(void) {
    MPI_Init(NULL, NULL);
    started();
}

MAYBE void start_threads(void) {
    int provided;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    CHECK(provided == MPI_THREAD_MULTIPLE);
    started();
}

/* Two events on every rank of a communicator: a number goes one rank on. */
MAYBE void exchange(MPI_Comm comm, int number) {
    int own, all, in = -1, out;
    MPI_Comm_rank(comm, &own);
    MPI_Comm_size(comm, &all);
    int to = (own + 1) % all, from = (own + all - 1) % all;
    out = 1000 * own + number;
    MPI_Sendrecv(&out, 1, MPI_INT, to, 9000, &in, 1, MPI_INT, from, 9000, comm, MPI_STATUS_IGNORE);
    CHECK(in == 1000 * from + number);
}

MAYBE void ring(MPI_Comm comm) { exchange(comm, 0); }

MAYBE void beat(void) {
    static int beats;
    exchange(MPI_COMM_WORLD, ++beats);
}

/* One event, a collective: the sum of the members' values. */
MAYBE int total(MPI_Comm comm, int value) {
    int sum = -1;
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, comm);
    return sum;
}

MAYBE void meet(void) { CHECK(total(MPI_COMM_WORLD, rank) == size * (size - 1) / 2); }

/* Numbers that tell who wrote them. */
MAYBE void fill(int *data, int n, int who) {
    for (int i = 0; i < n; i++) data[i] = who * 1000003 + i;
}

MAYBE int filled(const int *data, int n, int who) {
    for (int i = 0; i < n; i++)
        if (data[i] != who * 1000003 + i) return 0;
    return 1;
}

/* Adds a line to what this rank has to say. */
MAYBE void say(const char *format, ...) {
    size_t used = strlen(told);
    va_list list;
    used += (size_t)snprintf(told + used, sizeof told - used, "[%d] ", rank);
    va_start(list, format);
    used += (size_t)vsnprintf(told + used, sizeof told - used, format, list);
    va_end(list);
    snprintf(told + used, sizeof told - used, "\n");
}

/* Rank 0 prints what all have to say, and that all is well. */
MAYBE int done(const char *name) {
    char *all = rank == 0 ? (char *)malloc(sizeof told * (size_t)size) : NULL;
    MPI_Gather(told, sizeof told, MPI_CHAR, all, sizeof told, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        for (int i = 0; i < size; i++) printf("%s", all + sizeof told * (size_t)i);
        printf("ok %s\n", name);
        fflush(stdout);
    }
    free(all);
    MPI_Finalize();
    return 0;
}

#endif
