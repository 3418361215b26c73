// A stack of its own for signal handlers.
#include "state.h"
#include <signal.h>

static char *stack;
static volatile int within;

static void handle(int number) {
    char here;
    within += number == SIGUSR1 && &here >= stack && &here < stack + 65536;
}

int main(void) {
    start();
    stack = malloc(65536);
    stack_t set = {.ss_sp = stack, .ss_size = 65536}, got;
    struct sigaction action = {0};
    CHECK(sigaltstack(&set, NULL) == 0);
    action.sa_handler = handle;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, &action, NULL);
    for (int i = 0; i < 6; i++) {
        beat();
        raise(SIGUSR1);
    }
    CHECK(sigaltstack(NULL, &got) == 0 && got.ss_sp == stack && got.ss_size == 65536 && within == 6);
    beat();
    say("within %d times", within);
    return done("signal_stack");
}
