/* Handlers, masks and alternate stacks work, those of the host's own signals too. */
#include "check.h"

static __thread int local = 5;
static volatile int got, on_stack, code;
static char stack[65536];
static sigjmp_buf out;

static void handler(int signal, siginfo_t *info, void *context) {
    char here;
    got = signal;
    code = info->si_code;
    on_stack = &here > stack && &here < stack + sizeof stack;
    CHECK(local == 5 && context);
}
static void jump(int signal) { siglongjmp(out, signal); }
static void *raiser(void *main_thread) {
    usleep(20000);
    pthread_kill(*(pthread_t *)main_thread, SIGUSR1);
    return 0;
}

int main(void) {
    stack_t s = {stack, 0, sizeof stack};
    CHECK(sigaltstack(&s, 0) == 0);
    struct sigaction action = {0}, old;
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    int kinds[] = {SIGUSR1, SIGSYS, 63, SIGCHLD};
    for (int i = 0; i < 4; i++) {
        CHECK(sigaction(kinds[i], &action, 0) == 0);
        CHECK(sigaction(kinds[i], 0, &old) == 0 && old.sa_sigaction == handler && old.sa_flags & SA_ONSTACK);
        raise(kinds[i]);
        CHECK(got == kinds[i] && code == SI_TKILL);
    }
    raise(SIGUSR1);
    CHECK(on_stack);
    union sigval value = {.sival_int = 77};
    got = 0;
    CHECK(sigqueue(getpid(), 63, value) == 0 && got == 63 && code == SI_QUEUE);
    sigset_t all, before, now;
    sigfillset(&all);
    CHECK(sigprocmask(SIG_BLOCK, &all, &before) == 0);
    got = 0;
    raise(SIGUSR1);
    CHECK(got == 0);
    CHECK(in_range(mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)));
    sigset_t but = all;
    sigdelset(&but, SIGUSR1);
    CHECK(sigsuspend(&but) == -1 && errno == EINTR && got == SIGUSR1);
    struct timespec moment = {0, 1000000};
    CHECK(ppoll(0, 0, &moment, &all) == 0 && pselect(0, 0, 0, 0, &moment, &all) == 0);
    pthread_t self = pthread_self(), other;
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    pthread_create(&other, 0, raiser, &self);
    CHECK(sigwaitinfo(&one, 0) == SIGUSR1);
    pthread_join(other, 0);
    CHECK(sigprocmask(SIG_SETMASK, &before, 0) == 0);
    sigprocmask(SIG_BLOCK, 0, &now);
    CHECK(!sigismember(&now, SIGUSR1));
    action.sa_flags |= SA_RESETHAND;
    CHECK(sigaction(SIGUSR2, &action, 0) == 0);
    raise(SIGUSR2);
    CHECK(got == SIGUSR2 && sigaction(SIGUSR2, 0, &old) == 0 && old.sa_handler == SIG_DFL);
    signal(SIGSEGV, jump);
    for (volatile int i = 0; i < 3; i++)
        if (sigsetjmp(out, 1) == 0) {
            *(volatile int *)8 = 1;
            CHECK(!"a fault");
        }
    CHECK(sigaction(SIGKILL, &action, 0) == -1 && errno == EINVAL && sigaction(SIGPIPE, 0, &old) == 0 && old.sa_handler == SIG_DFL);
    signal(SIGALRM, jump);
    if (sigsetjmp(out, 1) == 0) {
        alarm(1);
        pause();
    }
    return finish();
}
