// A module that is loaded while the program runs, with its own state, and unloaded again.
// module: module.c
// flags: -ldl
#ifdef MODULE
static int counter = 100;
static __thread int own = 7;
int count(int n) {
    own += n;
    return counter += own;
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
    beat();
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!module) fprintf(stderr, "%s\n", dlerror());
    CHECK(module);
    int (*count)(int) = (int (*)(int))dlsym(module, "count"), sum = 0;
    for (int i = 0; i < 5; i++) {
        beat();
        sum = count(i);
    }
    CHECK(sum == 100 + 7 + 8 + 10 + 13 + 17);
    Dl_info facts;
    CHECK(dladdr((void *)count, &facts) && !strcmp(facts.dli_fname, path) && !strcmp(facts.dli_sname, "count"));
    dlclose(module);
    beat();
    void *math = dlopen("libm.so.6", RTLD_LAZY);
    double (*root)(double) = (double (*)(double))dlsym(math, "sqrt");
    beat();
    CHECK(root(81.0) == 9.0);
    beat();
    say("counted %d", sum);
    return done("module");
}
#endif
