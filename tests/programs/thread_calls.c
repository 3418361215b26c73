// A second thread makes MPI calls while the first waits for it.
#include "state.h"
#include <pthread.h>

static __thread int own = 3;

static void *communicate(void *unused) {
    MPI_Comm copy;
    own = 40;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    for (int i = 0; i < 5; i++) {
        ring(copy);
        CHECK(own++ == 40 + i);
        int is_main;
        MPI_Is_thread_main(&is_main);
        CHECK(!is_main);
    }
    MPI_Comm_free(&copy);
    return unused;
}

int main(void) {
    start_threads();
    pthread_t thread;
    for (int i = 0; i < 2; i++) beat();
    CHECK(!pthread_create(&thread, NULL, communicate, NULL));
    CHECK(!pthread_join(thread, NULL) && own == 3);
    for (int i = 0; i < 3; i++) beat();
    int is_main;
    MPI_Is_thread_main(&is_main);
    CHECK(is_main);
    say("joined");
    return done("thread_calls");
}
