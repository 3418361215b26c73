// Signals, which a library of the machine takes as it starts: LLVM does, which drivers of graphics cards bring along.
// module: the MPI library as the split process sees it
// setting: PHASECAST_MPI={module}
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>

#ifdef MODULE
static void taken(int number) {
    (void)number;
}

int PMPI_Init_thread(int *count, char ***arguments, int required, int *provided) {
    int result = MPI_Init_thread(count, arguments, required, provided);
    stack_t stack = {.ss_size = 65536, .ss_sp = malloc(65536)};
    sigaltstack(&stack, NULL);
    for (int number = 1; number < NSIG; number++) signal(number, taken);
    return result;
}
#else
#include "state.h"
#include <sys/mman.h>

static volatile sig_atomic_t seen, on_stack;
static char stack[65536];

static void handle(int number) {
    char here;
    seen += number;
    on_stack += &here >= stack && &here < stack + sizeof stack;
}

int main(void) {
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
    stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&own, NULL);
    sigaction(SIGUSR2, &action, NULL);
    start();
    for (int i = 1; i <= 4; i++) {
        int *memory = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(memory != MAP_FAILED);
        memory[100 * i] = i;
        raise(SIGUSR2);
        beat();
        CHECK(memory[100 * i] == i && seen == i * SIGUSR2 && on_stack == i);
    }
    say("seen");
    return done("signals_of_library");
}
#endif
