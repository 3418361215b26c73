// Handlers for signals, of both kinds, one that is reset, one ignored; they use the thread's variables and interrupt MPI.
#include "state.h"
#include <signal.h>

static volatile sig_atomic_t plain, with_info, once;
static __thread int own = 5;

static void first(int number) { plain += number == SIGUSR1 ? own : 1000; }

static void second(int number, siginfo_t *info, void *context) {
    (void)context;
    if (number == SIGUSR2 && info->si_signo == SIGUSR2) with_info++;
}

static void third(int number) { once += number == SIGTERM; }

int main(void) {
    start();
    struct sigaction action = {0}, was;
    signal(SIGUSR1, first);
    signal(SIGPIPE, SIG_IGN);
    action.sa_sigaction = second;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigaddset(&action.sa_mask, SIGUSR1);
    sigaction(SIGUSR2, &action, NULL);
    action.sa_handler = third;
    action.sa_flags = (int)SA_RESETHAND;
    sigaction(SIGTERM, &action, NULL);
    for (int i = 0; i < 6; i++) {
        beat();
        if (i == 3) raise(SIGTERM);
        raise(i % 2 ? SIGUSR2 : SIGUSR1);
    }
    sigaction(SIGUSR2, NULL, &was);
    CHECK(was.sa_sigaction == second && (was.sa_flags & SA_RESTART) && sigismember(&was.sa_mask, SIGUSR1) == 1);
    sigaction(SIGPIPE, NULL, &was);
    CHECK(was.sa_handler == SIG_IGN);
    sigaction(SIGTERM, NULL, &was);
    CHECK(was.sa_handler == SIG_DFL && once == 1);
    CHECK(plain == 15 && with_info == 3);
    beat();
    say("%d and %d", (int)plain, (int)with_info);
    return done("signal_handlers");
}
