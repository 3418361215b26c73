// The number of the process, which a program keeps and goes by.
#include "state.h"
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int got;
static void handler(int number) { got = number; }

int main(void) {
    start();
    pid_t own = getpid();
    cpu_set_t set;
    struct rlimit limit;
    char path[64];
    CHECK(syscall(SYS_gettid) == own && signal(SIGUSR1, handler) != SIG_ERR);
    for (int i = 0; i < 4; i++) {
        beat();
        CHECK(getpid() == own && syscall(SYS_gettid) == own && getpgid(own) == getpgid(0) && getpgid(0) == getpgrp());
        got = 0;
        CHECK(kill(own, SIGUSR1) == 0 && got == SIGUSR1);
        got = 0;
        CHECK(syscall(SYS_tgkill, own, own, SIGUSR1) == 0 && got == SIGUSR1);
        got = 0;
        CHECK(raise(SIGUSR1) == 0 && got == SIGUSR1);
        CHECK(sched_getaffinity(own, sizeof set, &set) == 0 && prlimit(own, RLIMIT_NOFILE, NULL, &limit) == 0);
        snprintf(path, sizeof path, "/proc/%d/exe", own);
        CHECK(readlink(path, path, sizeof path) > 0);
        pid_t child = fork();
        if (child == 0) _exit(getpid() == own || syscall(SYS_gettid) != getpid());
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    say("through");
    return done("process_number");
}
