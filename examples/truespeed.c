/* A program whose speed is that of its memory: truespeed KIND MB ITERATIONS.
 * KIND: stream (large arrays front to back), cache (arrays that fit), gather (places in no order), huge (as stream, in huge
 * pages where the machine has them), mixed (huge and small pages, written, zero and untouched, in places in no order).
 * Each iteration ends with an MPI_Barrier. At the end rank 0 prints of each rank how much of its memory stands in huge pages, in bytes,
 * and of each iteration the seconds on the wall and of the processor. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static uint64_t huge_pages(const void *from, size_t bytes) {
    FILE *smaps = fopen("/proc/self/smaps", "r");
    char line[512];
    uint64_t start, end, kb, sum = 0;
    int here = 0;
    while (smaps && fgets(line, sizeof line, smaps)) {
        if (sscanf(line, "%lx-%lx ", &start, &end) == 2) here = start < (uint64_t)from + bytes && (uint64_t)from < end;
        if (here && sscanf(line, "AnonHugePages: %lu kB", &kb) == 1) sum += kb * 1024;
    }
    if (smaps) fclose(smaps);
    return sum;
}

static double processor(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double triad(double *a, const double *b, const double *c, size_t n, int times) {
    for (int t = 0; t < times; t++)
        for (size_t i = 0; i < n; i++) a[i] = b[i] + 0.5 * c[i] + 1e-9 * a[i];
    return a[n / 3];
}

static double gather(const double *a, const uint32_t *place, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += a[place[i]];
    return sum;
}

int main(int argc, char **argv) {
    if (argc != 4) return fprintf(stderr, "usage: truespeed stream|cache|gather|huge|mixed MB ITERATIONS\n"), 2;
    const char *kind = argv[1];
    size_t bytes = (size_t)atoi(argv[2]) << 20, iterations = (size_t)atoi(argv[3]);
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double *times = calloc(2 * iterations + 1, sizeof *times), sum = 0;
    double *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || !times) return 1;
    int mixed = !strcmp(kind, "mixed"), is_gather = mixed || !strcmp(kind, "gather"), is_cache = !strcmp(kind, "cache");
    if (!strcmp(kind, "huge")) madvise(memory, bytes, MADV_HUGEPAGE);
    if (mixed) {
        uintptr_t middle = ((uintptr_t)memory + bytes / 2) & ~((uintptr_t)(2 << 20) - 1);
        madvise((void *)middle, bytes / 4, MADV_HUGEPAGE);
    }
    size_t n = bytes / sizeof *memory / 3;
    uint32_t *place = (uint32_t *)(memory + 2 * n);
    uint64_t random = 88172645463325252u + (uint64_t)rank;
    for (size_t i = 0; i < 3 * n; i++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        /* Of mixed memory, some pages are only read (the page of zeros), some hold zeros of their own. */
        size_t page = i / 512 % 8;
        if (is_gather && i >= 2 * n) place[i - 2 * n] = (uint32_t)(random % (2 * n));
        else if (mixed && page == 3) sum += memory[i];
        else if (mixed && page == 5) memory[i] = 0;
        else memory[i] = 1.0 + 1e-7 * (double)(random >> 44);
    }
    /* As many passes as make some milliseconds. */
    int passes = is_cache ? (int)((64 << 20) / bytes) + 1 : 1;
    MPI_Barrier(MPI_COMM_WORLD);
    for (size_t k = 0; k < iterations; k++) {
        double start = MPI_Wtime(), used = processor();
        if (is_gather) sum += gather(memory, place, n < 1 << 20 ? n : 1 << 20);
        else sum += triad(memory, memory + n, memory + 2 * n, n, passes);
        times[2 * k + 1] = processor() - used;
        times[2 * k] = MPI_Wtime() - start;
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (sum == 42) printf("sum %g\n", sum);
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    /* Of what several ranks print, a launcher may mix the lines. */
    size_t words = 2 * iterations + 1;
    double *all = calloc((size_t)size * words, sizeof *all);
    if (!all) return 1;
    times[2 * iterations] = (double)huge_pages(memory, bytes);
    MPI_Gather(times, (int)words, MPI_DOUBLE, all, (int)words, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    for (int of = 0; rank == 0 && of < size; of++) {
        double *its = all + (size_t)of * words;
        printf("rank %d huge %.0f times", of, its[2 * iterations]);
        for (size_t k = 0; k < 2 * iterations; k++) printf(" %.6f", its[k]);
        printf("\n");
    }
    MPI_Finalize();
    return 0;
}
