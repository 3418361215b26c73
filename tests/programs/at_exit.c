// What the program wants done at its end: handlers of atexit, in their order, after MPI_Finalize.
#include "state.h"

static char trail[8];

static void first(void) {
    strcat(trail, "1");
    printf("[%d] end %s\n", rank, trail);
}
static void second(void) { strcat(trail, "2"); }

int main(void) {
    start();
    atexit(first);
    for (int i = 0; i < 3; i++) beat();
    atexit(second);
    for (int i = 0; i < 4; i++) beat();
    return done("at_exit");
}
