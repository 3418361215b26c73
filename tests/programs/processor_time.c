// Processor time that has been used: clocks of it do not go back, and do not leap.
// ranks: 2
#define _GNU_SOURCE
#include "state.h"
#include <sys/resource.h>
#include <sys/times.h>
#include <time.h>

#define WAYS 6

/* Milliseconds of the process and of its main thread, by each way to ask for them. */
static void used(long *ms) {
    const clockid_t clocks[] = {CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID};
    const int whose[] = {RUSAGE_SELF, RUSAGE_THREAD};
    struct timespec t;
    struct rusage r;
    struct tms ticks;
    for (int i = 0; i < 2; i++) {
        CHECK(clock_gettime(clocks[i], &t) == 0 && getrusage(whose[i], &r) == 0);
        ms[i] = t.tv_sec * 1000 + t.tv_nsec / 1000000;
        ms[2 + i] = (r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1000 + (r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1000;
    }
    ms[4] = clock() / (CLOCKS_PER_SEC / 1000);
    CHECK(times(&ticks) != (clock_t)-1);
    ms[5] = (ticks.tms_utime + ticks.tms_stime) * 10;
}

int main(void) {
    start();
    long last[WAYS], now[WAYS];
    /* More than a restart needs until it goes on, so that a clock that began anew would be behind. */
    while (clock() < CLOCKS_PER_SEC);
    used(last);
    for (int i = 0; i < 5; i++) {
        beat();
        used(now);
        for (int way = 0; way < WAYS; way++) CHECK(now[way] >= last[way] && now[way] < last[way] + 20000);
        memcpy(last, now, sizeof last);
    }
    say("forward");
    return done("processor_time");
}
