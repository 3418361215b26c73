// Functions that the dynamic linker looks for at their first call, after a cut too, with arguments in all registers for them; and
// a module that names a function which is nowhere.
// module: late_binding.c
// flags: -Wl,-z,lazy -lm -ldl
#ifdef MODULE
int nowhere(int);

#define SUM(n) \
    double sum_##n(double a, double b, double c, double d, double e, double f, double g, double h) { \
        return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + n; \
    }
SUM(0)
SUM(1)
SUM(2)
SUM(3)

double sum(int n) {
    switch (n) {
    case 0: return sum_0(1, 2, 3, 4, 5, 6, 7, 8);
    case 1: return sum_1(1, 2, 3, 4, 5, 6, 7, 8);
    case 2: return sum_2(1, 2, 3, 4, 5, 6, 7, 8);
    case 3: return sum_3(1, 2, 3, 4, 5, 6, 7, 8);
    default: return nowhere(n);
    }
}
#else
#define _GNU_SOURCE
#include "state.h"
#include <dlfcn.h>
#include <math.h>

int main(int n, char **words) {
    char path[4096];
    start();
    snprintf(path, sizeof path, "%s.so", words[0]);
    beat();
    void *module = dlopen(path, RTLD_LAZY);
    if (!module) fprintf(stderr, "%s\n", dlerror());
    CHECK(module);
    double (*sum)(int) = (double (*)(int))dlsym(module, "sum");
    for (int i = 0; i < 4; i++) {
        beat();
        CHECK(sum(i) == 204 + i);
    }
    beat();
    CHECK(hypot(3.0 * n, 4.0) == 5);
    beat();
    CHECK(fabs(lgamma(n + 4.0) - log(24.0)) < 1e-9);
    return done("late_binding");
}
#endif
