// The main thread has ended (before MPI begins, where the library can begin in such a process). Another one has waited for
// that, takes the process's signals, and makes all calls.
#define _GNU_SOURCE
#include "state.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

static pthread_t first;
static atomic_int began;
static int rung;
#ifdef OPEN_MPI
enum { before_mpi = 1 };
#else
enum { before_mpi = 0 };
#endif

static void take(int signal) {
    (void)signal;
    rung += gettid() != getpid();
}

static void *communicate(void *unused) {
    int provided;
    void *left = NULL;
    if (!before_mpi) {
        MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided);
        began = 1;
    }
    CHECK(!pthread_join(first, &left) && left == &rung);
    if (before_mpi) MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided);
    CHECK(provided >= MPI_THREAD_SERIALIZED);
    started();
    for (int i = 1; i <= 5; i++) {
        beat();
        CHECK(!kill(getpid(), SIGURG));
        while (rung < i) sched_yield();
    }
    say("rang %d times", rung);
    done("main_gone");
    return unused;
}

int main(void) {
    pthread_t thread;
    struct sigaction action = {.sa_handler = take, .sa_flags = SA_RESTART};
    CHECK(!sigaction(SIGURG, &action, NULL));
    first = pthread_self();
    CHECK(!pthread_create(&thread, NULL, communicate, NULL));
    while (!before_mpi && !began) sched_yield();
    pthread_exit(&rung);
}
