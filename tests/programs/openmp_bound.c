// OpenMP threads that are bound to one processor each when they are made, and never again.
// flags: -fopenmp
// setting: OMP_PLACES=threads
#define _GNU_SOURCE
#include "state.h"
#include <omp.h>
#include <sched.h>

static cpu_set_t bound;
#pragma omp threadprivate(bound)

int main(void) {
    start();
    int bad = 0, single = 0;
    omp_set_dynamic(0);
    omp_set_num_threads(2);
#pragma omp parallel reduction(+ : bad, single)
    {
        bad += sched_getaffinity(0, sizeof bound, &bound) != 0;
        single += CPU_COUNT(&bound) == 1;
    }
    for (int i = 0; i < 4; i++) {
        beat();
#pragma omp parallel reduction(+ : bad)
        {
            cpu_set_t now;
            bad += sched_getaffinity(0, sizeof now, &now) != 0 || !CPU_EQUAL(&now, &bound) || !CPU_ISSET(sched_getcpu(), &now);
        }
    }
    say("%d bound, %d times not so", single, bad);
    return done("openmp_bound");
}
