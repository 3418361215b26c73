// A library that is opened with RTLD_DEEPBIND, so that its calls of MPI go to what it needs before what was loaded first.
// module: opened_deeply.c
// flags: -ldl
#ifdef MODULE
#include <mpi.h>
int round_of(MPI_Comm comm, int to, int from, int sent) {
    int got = -1, sum = 0;
    MPI_Sendrecv(&sent, 1, MPI_INT, to, 7, &got, 1, MPI_INT, from, 7, comm, MPI_STATUS_IGNORE);
    MPI_Allreduce(&got, &sum, 1, MPI_INT, MPI_SUM, comm);
    return sum;
}
#else
#define _GNU_SOURCE
#include "state.h"
#include <dlfcn.h>

int main(int n, char **words) {
    char path[4096];
    start();
    CHECK(n == 1);
    snprintf(path, sizeof path, "%s.so", words[0]);
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    if (!module) fprintf(stderr, "%s\n", dlerror());
    CHECK(module && dlerror() == NULL);
    int (*round_of)(MPI_Comm, int, int, int) = (int (*)(MPI_Comm, int, int, int))dlsym(module, "round_of");
    MPI_Comm own;
    MPI_Comm_dup(MPI_COMM_WORLD, &own);
    int sum = 0, ranks;
    MPI_Comm_size(own, &ranks);
    for (int i = 1; i < 5; i++) {
        beat();
        sum += round_of(own, after, before, i);
    }
    CHECK(sum == 10 * ranks);
    void *other = dlopen("libm.so.6", RTLD_NOW | RTLD_DEEPBIND);
    double (*floored)(double) = (double (*)(double))dlsym(other, "floor");
    beat();
    CHECK(floored(3.5) == 3.0 && dlopen("libnowhere.so", RTLD_NOW | RTLD_DEEPBIND) == NULL && dlerror() != NULL);
    MPI_Comm_free(&own);
    say("sum %d", sum);
    return done("opened_deeply");
}
#endif
