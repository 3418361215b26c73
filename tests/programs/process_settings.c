// What a program has set for its process and its threads by prctl, membarrier and arch_prctl.
// flags: -lpthread
#define _GNU_SOURCE
#include "state.h"
#include <asm/prctl.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { EXPEDITED = 1 << 3, REGISTER_EXPEDITED = 1 << 4 };
static long own[2];
static pthread_barrier_t meets;

static unsigned long gs(void) {
    unsigned long base = 0;
    syscall(SYS_arch_prctl, ARCH_GET_GS, &base);
    return base;
}

static void *other(void *nothing) {
    CHECK(syscall(SYS_arch_prctl, ARCH_SET_GS, &own[1]) == 0);
    pthread_barrier_wait(&meets);
    pthread_barrier_wait(&meets);
    long got;
    __asm__ volatile("mov %%gs:0, %0" : "=r"(got));
    CHECK(gs() == (unsigned long)&own[1] && got == 22);
    return nothing;
}

int main(void) {
    start();
    own[0] = 11;
    own[1] = 22;
    pthread_t thread;
    pthread_barrier_init(&meets, NULL, 2);
    pthread_create(&thread, NULL, other, NULL);
    pthread_barrier_wait(&meets);
    int subreaper = 0, signal_of_parent = 0;
    CHECK(syscall(SYS_arch_prctl, ARCH_SET_GS, &own[0]) == 0);
    CHECK(prctl(PR_SET_TIMERSLACK, 77777) == 0 && prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0 && prctl(PR_SET_PDEATHSIG, 12) == 0);
    CHECK(syscall(SYS_membarrier, REGISTER_EXPEDITED, 0, 0) == 0);
    for (int i = 0; i < 4; i++) {
        beat();
        long got;
        __asm__ volatile("mov %%gs:0, %0" : "=r"(got));
        CHECK(gs() == (unsigned long)&own[0] && got == 11);
        CHECK(prctl(PR_GET_TIMERSLACK) == 77777 && prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == 1);
        CHECK(prctl(PR_GET_CHILD_SUBREAPER, &subreaper) == 0 && subreaper == 1);
        CHECK(prctl(PR_GET_PDEATHSIG, &signal_of_parent) == 0 && signal_of_parent == 12);
        CHECK(syscall(SYS_membarrier, EXPEDITED, 0, 0) == 0);
    }
    pthread_barrier_wait(&meets);
    pthread_join(thread, NULL);
    say("own %ld %ld", own[0], own[1]);
    return done("process_settings");
}
