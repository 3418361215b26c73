// All MPI calls, the first and the last too, are made by a thread that is not the main one and has a small stack, a way to
// round, a mask of signals and an alternate stack of its own. The main thread answers it, waiting and computing in turn.
// flags: -O1 -frounding-math -lm
#define _GNU_SOURCE
#include "state.h"
#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

enum { ROUNDS = 6 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t news = PTHREAD_COND_INITIALIZER;
static atomic_int asked, answered, rung;
static atomic_int main_is_main;
static double one = 1, three = 3;
static char main_stack[1 << 16], own_stack[1 << 16];

static void take(int signal) {
    (void)signal;
    char here;
    /* Of the main thread, whose alternate stack it is on. */
    rung += &here >= main_stack && &here < main_stack + sizeof main_stack;
}

static void alternate(char *at) {
    stack_t stack = {.ss_sp = at, .ss_size = sizeof main_stack}, old;
    CHECK(!sigaltstack(&stack, &old) && !sigaltstack(NULL, &old) && old.ss_sp == at);
}

static int is_alternate(char *at) {
    stack_t old;
    return !sigaltstack(NULL, &old) && old.ss_sp == at && old.ss_size == sizeof main_stack;
}

static int blocks(int signal) {
    sigset_t mask;
    return !pthread_sigmask(SIG_BLOCK, NULL, &mask) && sigismember(&mask, signal);
}

static void block(int signal) {
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, signal);
    CHECK(!pthread_sigmask(SIG_BLOCK, &mask, NULL));
}

static void ask(int number) {
    pthread_mutex_lock(&lock);
    asked = number;
    pthread_cond_signal(&news);
    pthread_mutex_unlock(&lock);
    while (answered != number) sched_yield();
}

static void *communicate(void *main_thread) {
    int provided, is_main;
    block(SIGURG);
    alternate(own_stack);
    CHECK(!fesetround(FE_UPWARD));
    double up = one / three, began;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided);
    CHECK(provided >= MPI_THREAD_SERIALIZED);
    started();
    began = MPI_Wtime();
    for (int i = 1; i <= ROUNDS; i++) {
        beat();
        ask(i);
        meet();
        CHECK(one / three == up && fegetround() == FE_UPWARD);
        CHECK(blocks(SIGURG) && !blocks(SIGUSR2) && is_alternate(own_stack));
        CHECK(!pthread_kill(*(pthread_t *)main_thread, SIGURG));
        MPI_Is_thread_main(&is_main);
        CHECK(is_main && !main_is_main && MPI_Wtime() > began);
    }
    ask(ROUNDS + 1);
    say("rang %d times", rung);
    done("thread_begins");
    return NULL;
}

int main(void) {
    struct sigaction action = {.sa_handler = take, .sa_flags = SA_ONSTACK | SA_RESTART};
    pthread_t own = pthread_self(), thread;
    pthread_attr_t small;
    CHECK(!sigaction(SIGURG, &action, NULL));
    alternate(main_stack);
    CHECK(!pthread_attr_init(&small) && !pthread_attr_setstacksize(&small, 256 << 10));
    CHECK(!pthread_create(&thread, &small, communicate, &own));
    block(SIGUSR2);
    double down = one / three;
    for (int i = 1; i <= ROUNDS + 1; i++) {
        if (i % 2) {
            pthread_mutex_lock(&lock);
            while (asked != i) pthread_cond_wait(&news, &lock);
            pthread_mutex_unlock(&lock);
        } else {
            double sum = 0;
            long turns = 0;
            for (; asked != i; turns++) sum += one / three;
            CHECK(turns == 0 || sum > 0);
        }
        CHECK(one / three == down && fegetround() == FE_TONEAREST);
        CHECK(blocks(SIGUSR2) && !blocks(SIGURG) && is_alternate(main_stack));
        /* Each signal but the last has come before the question that follows it. */
        while (rung < i - 1) sched_yield();
        int is_main = 0;
        MPI_Is_thread_main(&is_main);
        main_is_main = is_main;
        answered = i;
    }
    CHECK(!pthread_join(thread, NULL));
    return 0;
}
