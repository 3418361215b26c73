// A pool of OpenMP threads, waiting between regions, with variables of their own.
// flags: -fopenmp
#include "state.h"
#include <omp.h>

static int own;
#pragma omp threadprivate(own)

int main(void) {
    start();
    int sum = 0, shared[3] = {0};
    omp_set_dynamic(0);
    omp_set_num_threads(3);
#pragma omp parallel
    own = 10 * omp_get_thread_num();
    for (int i = 0; i < 6; i++) {
        beat();
#pragma omp parallel reduction(+ : sum)
        {
            own++;
            sum += own;
            shared[omp_get_thread_num()] += i;
        }
    }
    CHECK(sum == 6 * 30 + 3 * 21 && shared[0] == 15 && shared[2] == 15 && omp_get_max_threads() == 3);
    beat();
    say("sum %d", sum);
    return done("openmp");
}
