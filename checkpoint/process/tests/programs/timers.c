/* Timers that are made, one of which rings in threads of the C library's, and threads that are named by their old numbers:
 * saved, and made again. */
#include "check.h"

static timer_t far, again, waited;
static volatile int rung, over, number;

static void ring(union sigval value) { __atomic_fetch_add(&rung, value.sival_int, __ATOMIC_RELAXED); }
static void *other(void *unused) {
    number = syscall(SYS_gettid);
    while (!over) usleep(1000);
    return unused;
}

int main(void) {
    struct itimerspec day = {{0}, {86400, 0}}, soon = {{0, 2000000}, {0, 1}}, once = {{0}, {0, 1}}, left;
    struct sigevent none = {.sigev_notify = SIGEV_NONE}, waits = {.sigev_signo = SIGUSR1, .sigev_value.sival_int = 7};
    struct sigevent threads = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = ring, .sigev_value.sival_int = 1};
    struct timespec patience = {20, 0};
    pthread_t thread;
    siginfo_t info;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    CHECK(sigprocmask(SIG_BLOCK, &set, 0) == 0 && pthread_create(&thread, 0, other, 0) == 0);
    CHECK(timer_create(CLOCK_MONOTONIC, &none, &far) == 0 && timer_settime(far, 0, &day, 0) == 0);
    CHECK(timer_create(CLOCK_MONOTONIC, &threads, &again) == 0 && timer_settime(again, 0, &soon, 0) == 0);
    CHECK(timer_create(CLOCK_REALTIME, &waits, &waited) == 0 && timer_settime(waited, 0, &once, 0) == 0);
    usleep(20000);
    CHECK(rung > 0 && number > 0);

    long round = gate(1);
    CHECK(round < 1000);

    int before = rung;
    for (int i = 0; i < 20000 && rung < before + 3; i++) usleep(1000);
    CHECK(rung >= before + 3);
    CHECK(sigtimedwait(&set, &info, &patience) == SIGUSR1 && info.si_value.sival_int == 7);
    CHECK(timer_gettime(far, &left) == 0 && left.it_value.tv_sec > 86000 && timer_getoverrun(far) == 0);
    CHECK(syscall(SYS_tgkill, getpid(), number, 0) == 0);
    threads.sigev_value.sival_int = 1000000;
    timer_t later;
    CHECK(timer_create(CLOCK_MONOTONIC, &threads, &later) == 0 && timer_settime(later, 0, &once, 0) == 0);
    for (int i = 0; i < 20000 && rung < 1000000; i++) usleep(1000);
    CHECK(rung >= 1000000 && timer_delete(later) == 0 && timer_delete(later) < 0);
    gate(2);
    over = 1;
    CHECK(pthread_join(thread, 0) == 0 && timer_delete(far) == 0);
    printf("%ld\n", round);
    return finish();
}
