// Variables of a thread: initialised, zero, aligned, in the program and in its library.
#include "state.h"
#include <errno.h>

static __thread int set = 11;
static __thread char zero[5000];
static __thread _Alignas(64) double aligned[8];

int main(void) {
    start();
    int *where = &set;
    for (int i = 0; i < 7; i++) {
        errno = 40 + i;
        CHECK(set == 11 + i && zero[4999] == i && aligned[7] == i * 0.5 && ((size_t)aligned & 63) == 0);
        set++, zero[4999]++, aligned[7] += 0.5;
        int kept = errno;
        beat();
        CHECK(kept == 40 + i && where == &set);
    }
    say("set %d", set);
    return done("thread_local");
}
