// Threads have names, and one of them waits by a call of its own for longer than the program runs.
#define _GNU_SOURCE
#include "state.h"
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int over;

static void *waits(void *unused) {
    struct timespec limit = {600, 0};
    pthread_setname_np(pthread_self(), "waits");
    while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE))
        CHECK(syscall(SYS_futex, &over, FUTEX_WAIT, 0, &limit, NULL, 0) == 0 || errno == EAGAIN);
    return unused;
}

int main(void) {
    start_threads();
    pthread_t thread;
    char own[16], other[16] = "";
    pthread_setname_np(pthread_self(), "main of program");
    CHECK(!pthread_create(&thread, NULL, waits, NULL));
    while (strcmp(other, "waits")) pthread_getname_np(thread, other, sizeof other);
    /* It is in its call by now. */
    usleep(20000);
    for (int i = 0; i < 4; i++) {
        beat();
        CHECK(!pthread_getname_np(pthread_self(), own, sizeof own) && !strcmp(own, "main of program"));
        CHECK(!pthread_getname_np(thread, other, sizeof other) && !strcmp(other, "waits"));
    }
    __atomic_store_n(&over, 1, __ATOMIC_RELEASE);
    syscall(SYS_futex, &over, FUTEX_WAKE, 1, NULL, NULL, 0);
    CHECK(!pthread_join(thread, NULL));
    beat();
    say("%s, %s", own, other);
    return done("thread_names");
}
