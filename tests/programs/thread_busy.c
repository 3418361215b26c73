// A thread that computes all the time, in vector registers, and keeps its own variables.
// flags: -O2 -ftree-vectorize
#include "state.h"
#include <pthread.h>
#include <sched.h>

static volatile int stop;
static volatile long rounds;
static __thread long own = 7;

static void *compute(void *unused) {
    double a[16], b[16];
    for (int i = 0; i < 16; i++) a[i] = i, b[i] = 0;
    for (long n = 1; !stop; n++) {
        for (int i = 0; i < 16; i++) b[i] += a[i];
        own++;
        for (int i = 0; i < 16; i++)
            if (b[i] != (double)n * i || own != 7 + n) return "wrong";
        rounds = n;
        if (n % 1000 == 0) sched_yield();
    }
    return unused;
}

int main(void) {
    start_threads();
    pthread_t thread;
    void *result;
    CHECK(!pthread_create(&thread, NULL, compute, NULL));
    for (int i = 0; i < 6; i++) {
        long was = rounds;
        beat();
        while (rounds == was) sched_yield();
    }
    stop = 1;
    CHECK(!pthread_join(thread, &result) && result == NULL && own == 7);
    beat();
    say("computed");
    return done("thread_busy");
}
