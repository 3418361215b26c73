// A program without MPI of its own: all is in a module, and the MPI library comes with it once the program runs.
// module: yes
// flags: -Wl,--as-needed -ldl
#ifdef MODULE
#include "state.h"

int run(void) {
    int last = 0;
    start();
    for (int i = 1; i < 4; i++) {
        MPI_Send(&i, 1, MPI_INT, after, i, MPI_COMM_WORLD);
        beat();
        MPI_Recv(&last, 1, MPI_INT, before, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(last == i);
        meet();
    }
    say("last %d", last);
    return done("late_library");
}
#else
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    char path[4096];
    snprintf(path, sizeof path, "%s.so", argv[0]);
    if (dlsym(RTLD_DEFAULT, "ompi_mpi_comm_world") != NULL) return 2;
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (module == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 3;
    }
    int (*run)(void) = (int (*)(void))dlsym(module, "run");
    return run != NULL ? run() : 4;
}
#endif
