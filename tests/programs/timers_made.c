// Timers made by timer_create: one that is far off, one that rings for a handler, one whose signal the program waits for, one
// that rings again and again in a thread, and those that count what the process and a thread have used.
#include "state.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

enum { FAR, HANDLED, WAITED, THREADS, USED, USED_BY_OTHER, ALL };
static timer_t timers[ALL];
static volatile int handled, in_threads, over;

static void on_signal(int number, siginfo_t *info, void *context) {
    (void)number, (void)context;
    handled += info->si_value.sival_int;
}

static void in_thread(union sigval value) { __atomic_fetch_add(&in_threads, value.sival_int, __ATOMIC_RELAXED); }

static void *other(void *unused) {
    while (!over) usleep(1000);
    return unused;
}

static void make(int which, clockid_t clock, int notify, int number, int value) {
    struct sigevent event = {.sigev_notify = notify, .sigev_signo = number, .sigev_value.sival_int = value};
    if (notify == SIGEV_THREAD) event.sigev_notify_function = in_thread;
    CHECK(timer_create(clock, &event, &timers[which]) == 0);
}

/* In nanoseconds. */
static void set(int which, long value, long interval) {
    struct itimerspec time = {{interval / 1000000000, interval % 1000000000}, {value / 1000000000, value % 1000000000}};
    CHECK(timer_settime(timers[which], 0, &time, NULL) == 0);
}

static long left(int which) {
    struct itimerspec time;
    CHECK(timer_gettime(timers[which], &time) == 0);
    return time.it_value.tv_sec * 1000000000l + time.it_value.tv_nsec;
}

/* Whether all that is to come does within a time. */
static int comes(volatile int *count, int wanted) {
    for (double since = MPI_Wtime(); *count < wanted && MPI_Wtime() - since < 20;) usleep(500);
    return *count >= wanted;
}

int main(void) {
    const long far = 5000000000000;
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_RESTART | SA_SIGINFO};
    struct timespec patience = {20, 0}, none = {0, 0};
    sigset_t awaited;
    siginfo_t info;
    pthread_t thread;
    clockid_t clock;
    sigemptyset(&awaited);
    sigaddset(&awaited, SIGRTMIN + 3);
    /* Threads of the library must not get it either. */
    sigprocmask(SIG_BLOCK, &awaited, NULL);
    start_threads();
    CHECK(sigaction(SIGUSR2, &action, NULL) == 0);
    CHECK(!pthread_create(&thread, NULL, other, NULL) && !pthread_getcpuclockid(thread, &clock));
    make(FAR, CLOCK_MONOTONIC, SIGEV_NONE, 0, 0);
    make(HANDLED, CLOCK_REALTIME, SIGEV_SIGNAL, SIGUSR2, 1);
    make(THREADS, CLOCK_MONOTONIC, SIGEV_THREAD, 0, 1);
    make(USED, CLOCK_PROCESS_CPUTIME_ID, SIGEV_NONE, 0, 0);
    make(USED_BY_OTHER, clock, SIGEV_NONE, 0, 0);
    set(FAR, far, 0);
    set(USED, far, 0);
    set(USED_BY_OTHER, far, 0);
    for (int i = 1; i <= 3; i++) {
        make(WAITED, CLOCK_MONOTONIC, SIGEV_SIGNAL, SIGRTMIN + 3, i);
        set(HANDLED, 3000000, 0);
        set(WAITED, i == 2 ? 8000000 : 1, 0);
        set(THREADS, 1, 2000000);
        if (i > 1) usleep(5000);
        beat();
        CHECK(comes(&handled, i) && handled == i && left(HANDLED) == 0);
        CHECK(comes(&in_threads, in_threads + 2) && left(THREADS) > 0);
        CHECK(sigtimedwait(&awaited, &info, &patience) == SIGRTMIN + 3 && info.si_value.sival_int == i);
        CHECK(sigtimedwait(&awaited, &info, &none) < 0 && errno == EAGAIN && left(WAITED) == 0);
        for (int of = FAR; of <= USED_BY_OTHER; of += of ? 1 : USED) CHECK(left(of) > far - far / 10 && left(of) <= far);
        set(THREADS, 0, 0);
        CHECK(timer_delete(timers[WAITED]) == 0 && timer_gettime(timers[WAITED], NULL) < 0 && errno == EINVAL);
        beat();
    }
    over = 1;
    pthread_join(thread, NULL);
    say("%d handled", handled);
    return done("timers_made");
}
