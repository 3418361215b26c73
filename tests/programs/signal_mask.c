// Signals that are blocked, and one that waits behind the mask.
// refuses: a signal waits that the program has blocked
#include "state.h"
#include <signal.h>

static volatile sig_atomic_t seen;

static void handle(int number) { seen += number; }

int main(void) {
    start();
    sigset_t set, was;
    signal(SIGUSR2, handle);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    for (int i = 0; i < 4; i++) beat();
    sigprocmask(SIG_BLOCK, NULL, &was);
    CHECK(sigismember(&was, SIGUSR2) == 1 && sigismember(&was, SIGHUP) == 1 && sigismember(&was, SIGUSR1) == 0);
    raise(SIGUSR2);
    CHECK(seen == 0);
    for (int i = 0; i < 3; i++) beat();
    sigpending(&set);
    CHECK(seen == 0 && sigismember(&set, SIGUSR2) == 1);
    sigemptyset(&set);
    sigprocmask(SIG_SETMASK, &set, NULL);
    CHECK(seen == SIGUSR2);
    beat();
    say("seen");
    return done("signal_mask");
}
