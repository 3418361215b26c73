// Threads that are pinned to one processor each, the main one too, and one that is not.
// flags: -pthread
#define _GNU_SOURCE
#include "state.h"
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

enum { OTHERS = 3 };
static cpu_set_t first;
static pthread_barrier_t gate;
static int wrong_ones[OTHERS];

/* The processor at a place among the first ones. */
static int at(int place) {
    int cpu = 0;
    for (place %= CPU_COUNT(&first); !CPU_ISSET(cpu, &first) || place-- > 0; cpu++) {}
    return cpu;
}

static void pin(int place) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(at(place), &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
}

static int pinned(int place) {
    cpu_set_t found;
    return sched_getaffinity(0, sizeof found, &found) == 0 && CPU_COUNT(&found) == 1 && CPU_ISSET(at(place), &found) &&
           sched_getcpu() == at(place);
}

/* The last one is not pinned. */
static void *other(void *number) {
    int i = (int)(size_t)number;
    if (i < OTHERS - 1) pin(rank + i);
    for (;;) {
        pthread_barrier_wait(&gate);
        if (i < OTHERS - 1) {
            wrong_ones[i] += !pinned(rank + i);
        } else {
            cpu_set_t found;
            wrong_ones[i] += sched_getaffinity(0, sizeof found, &found) != 0 || !CPU_EQUAL(&found, &first);
        }
        pthread_barrier_wait(&gate);
    }
    return NULL;
}

int main(void) {
    CHECK(sched_getaffinity(0, sizeof first, &first) == 0);
    start();
    pthread_barrier_init(&gate, NULL, OTHERS + 1);
    pthread_t thread;
    for (size_t i = 0; i < OTHERS; i++) CHECK(pthread_create(&thread, NULL, other, (void *)i) == 0);
    int main_wrong = 0;
    pin(rank + 1);
    for (int i = 0; i < 4; i++) {
        beat();
        main_wrong += !pinned(rank + 1);
        pthread_barrier_wait(&gate);
        pthread_barrier_wait(&gate);
    }
    say("wrong: %d of the main thread, %d %d %d of others", main_wrong, wrong_ones[0], wrong_ones[1], wrong_ones[2]);
    return done("processors");
}
