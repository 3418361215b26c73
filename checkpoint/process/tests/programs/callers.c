/* Threads call the host at the same time, each with thread-local storage of its own in both halves; signals strike
   during the calls. */
#include "check.h"
#define THREADS 6
static __thread long local;
static volatile int struck, wrong;

static void handler(int signal) {
    struck++;
    if (local < 100 || local > 100 + THREADS) wrong++;
    char *m = malloc(1000); /* safe here: no thread is in malloc when the timer strikes, all are in the host */
    free(m);
}
static long callback(long value) { return local + value; }

static void *caller(void *p) {
    local = 100 + (long)p;
    long first = gate(3);
    for (int i = 1; i < 20; i++) CHECK(gate(3) == first + i);
    CHECK(gate_with(4, callback, 1000) == local + 1000);
    return 0;
}

int main(void) {
    local = 100;
    CHECK(gate_with(4, callback, 7) == 107);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, 0);
    for (int round = 0; round < 3; round++) {
        pthread_t t[THREADS];
        for (long i = 0; i < THREADS; i++) pthread_create(&t[i], 0, caller, (void *)(i + 1));
        for (int i = 0; i < THREADS; i++) pthread_join(t[i], 0);
    }
    struct itimerval every = {{0, 2000}, {0, 2000}}, none = {{0}};
    setitimer(ITIMER_REAL, &every, 0);
    long first = gate(3);
    for (int i = 1; i < 40; i++) CHECK(gate(3) == first + i);
    setitimer(ITIMER_REAL, &none, 0);
    CHECK(struck > 10 && wrong == 0);
    /* Where the kernel has such tables the main thread's pointer is a segment's; a child has it, too. */
    char table[64];
    unsigned segment;
    __asm__("mov %%fs, %0" : "=r"(segment));
    CHECK(segment != 0 || syscall(SYS_modify_ldt, 0, table, sizeof table) <= 0);
    int status;
    pid_t child = fork();
    if (child == 0) _exit(gate(3) == first + 40 && local == 100 ? 0 : 1);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    return finish();
}
