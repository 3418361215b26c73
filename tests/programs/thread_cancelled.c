// Threads are cancelled while they wait, some of them after a cut, and the user is changed, which the C library tells all of
// them. Both are signals that the process sends itself.
// flags: -pthread
#include "state.h"
#include <pthread.h>
#include <unistd.h>

static int ended[3];

static void ends(void *which) { ended[*(int *)which] = 1; }

static void *waits(void *which) {
    pthread_cleanup_push(ends, which);
    for (;;) pause();
    pthread_cleanup_pop(0);
    return NULL;
}

int main(void) {
    start();
    pthread_t threads[3];
    int numbers[3];
    void *result;
    for (int i = 0; i < 3; i++) {
        numbers[i] = i;
        pthread_create(&threads[i], NULL, waits, &numbers[i]);
    }
    for (int i = 0; i < 3; i++) {
        beat();
        CHECK(!ended[i] && pthread_cancel(threads[i]) == 0 && pthread_join(threads[i], &result) == 0);
        CHECK(ended[i] && result == PTHREAD_CANCELED);
        if (i == 1) CHECK(seteuid(geteuid()) == 0);
    }
    beat();
    say("%d ended", ended[0] + ended[1] + ended[2]);
    return done("thread_cancelled");
}
