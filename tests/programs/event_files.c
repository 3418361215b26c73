// Timers and signals that are read from descriptors, and watched: one timer that is far off, one that has rung, one that
// rings again and again, and one that is not set.
#include "state.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { FAR, RUNG, AGAIN, UNSET, SIGNALS, ALL };
static int fds[ALL];

static long left(int fd) {
    struct itimerspec time;
    CHECK(timerfd_gettime(fd, &time) == 0);
    return time.it_value.tv_sec * 1000000000l + time.it_value.tv_nsec;
}

static void set(int fd, long value, long interval) {
    struct itimerspec time = {{interval / 1000000000, interval % 1000000000}, {value / 1000000000, value % 1000000000}};
    CHECK(timerfd_settime(fd, 0, &time, NULL) == 0);
}

/* Whether a timer that rings again and again goes on. In the moment in which it is due and has not rung yet nothing is left. */
static int goes_on(int fd) {
    for (int i = 0; i < 1000; i++)
        if (left(fd) > 0) return 1;
    return 0;
}

/* How often a timer has rung; 0 if it has not. */
static uint64_t rung(int fd) {
    uint64_t ticks = 0;
    CHECK(read(fd, &ticks, 8) == 8 || errno == EAGAIN);
    return ticks;
}

int main(void) {
    start();
    int watcher = epoll_create1(0), clocks[] = {CLOCK_MONOTONIC, CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME};
    struct signalfd_siginfo signal_read;
    struct epoll_event found[ALL];
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR2);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    for (int i = 0; i < SIGNALS; i++) fds[i] = timerfd_create(clocks[i], TFD_NONBLOCK);
    fds[SIGNALS] = signalfd(-1, &blocked, SFD_NONBLOCK | SFD_CLOEXEC);
    for (int i = 0; i < ALL; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = i};
        CHECK(fds[i] >= 0 && epoll_ctl(watcher, EPOLL_CTL_ADD, fds[i], &event) == 0);
    }
    set(fds[FAR], 5000000000000l, 0);
    for (int i = 0; i < 3; i++) {
        int others = 0;
        set(fds[RUNG], 1, 0);
        set(fds[AGAIN], 1, 1000000);
        usleep(5000);
        beat();
        CHECK(left(fds[FAR]) > 4900000000000l && left(fds[FAR]) < 5000000000000l && left(fds[UNSET]) == 0);
        CHECK(left(fds[RUNG]) == 0 && rung(fds[RUNG]) == 1 && rung(fds[RUNG]) == 0);
        CHECK(rung(fds[AGAIN]) >= 5 && goes_on(fds[AGAIN]));
        usleep(3000);
        CHECK(rung(fds[AGAIN]) >= 2);
        set(fds[AGAIN], 0, 0);
        CHECK(read(fds[SIGNALS], &signal_read, sizeof signal_read) < 0 && errno == EAGAIN);
        CHECK(raise(SIGUSR2) == 0);
        for (int n = epoll_wait(watcher, found, ALL, 1000), e = 0; e < n; e++) others += found[e].data.u32;
        CHECK(others == SIGNALS);
        CHECK(read(fds[SIGNALS], &signal_read, sizeof signal_read) == sizeof signal_read && signal_read.ssi_signo == SIGUSR2);
        CHECK((fcntl(fds[SIGNALS], F_GETFD) & FD_CLOEXEC) && !(fcntl(fds[FAR], F_GETFD) & FD_CLOEXEC));
    }
    say("through");
    return done("event_files");
}
