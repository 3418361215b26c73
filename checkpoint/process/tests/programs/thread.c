/* A thread that is not the main one saves the program and goes back, while the main thread computes, sleeps and waits in turn,
 * with a mask of signals, an alternate stack and a clock of processor time of its own. */
#include "check.h"
#include <fenv.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t news = PTHREAD_COND_INITIALIZER;
static volatile int over, turns;
static volatile double one = 1, three = 3;
static char stacks[2][1 << 16];

static int has(int own, int blocked, int other) {
    stack_t stack;
    sigset_t mask;
    return !sigaltstack(0, &stack) && stack.ss_sp == stacks[own] && !pthread_sigmask(SIG_BLOCK, 0, &mask) &&
           sigismember(&mask, blocked) && !sigismember(&mask, other);
}

static void get(int own, int blocked) {
    stack_t stack = {.ss_sp = stacks[own], .ss_size = sizeof stacks[own]};
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, blocked);
    CHECK(!sigaltstack(&stack, 0) && !pthread_sigmask(SIG_SETMASK, &mask, 0));
}

static void *goes(void *main_thread) {
    get(1, SIGUSR2);
    CHECK(fesetround(FE_UPWARD) == 0);
    double up = one / three;
    while (turns < 4) usleep(100);
    long round = gate(1);
    CHECK(round < 1000 && has(1, SIGUSR2, SIGUSR1));
    CHECK(one / three == up && fegetround() == FE_UPWARD);
    for (int before = turns; turns < before + 5;) usleep(100);
    CHECK(pthread_kill(*(pthread_t *)main_thread, 0) == 0);
    gate(2);
    printf("%ld\n", round);
    over = 1;
    return 0;
}

int main(void) {
    pthread_t thread, own = pthread_self();
    struct timespec last = {0}, now;
    get(0, SIGUSR1);
    CHECK(pthread_create(&thread, 0, goes, &own) == 0);
    double down = one / three, sum = 0;
    for (; !over; turns++) {
        for (int i = 0; i < 300000; i++) sum += one / three * 1e-6;
        CHECK(one / three == down && fegetround() == FE_TONEAREST && has(0, SIGUSR1, SIGUSR2) && sum > 0);
        CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0);
        CHECK(now.tv_sec > last.tv_sec || (now.tv_sec == last.tv_sec && now.tv_nsec > last.tv_nsec));
        last = now;
        usleep(500);
        clock_gettime(CLOCK_REALTIME, &now);
        now.tv_nsec += 1000000;
        now.tv_sec += now.tv_nsec / 1000000000;
        now.tv_nsec %= 1000000000;
        pthread_mutex_lock(&lock);
        int result = pthread_cond_timedwait(&news, &lock, &now);
        CHECK(result == 0 || result == ETIMEDOUT);
        pthread_mutex_unlock(&lock);
    }
    CHECK(pthread_join(thread, 0) == 0);
    return finish();
}
