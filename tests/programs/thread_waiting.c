// Threads that wait: for a condition, for a lock, for time to pass.
#include "state.h"
#include <pthread.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, held = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static int turn, answer, got_lock;
static volatile int stop;

static void *by_turns(void *unused) {
    pthread_mutex_lock(&lock);
    for (int expected = 1; expected <= 5; expected++) {
        while (turn < expected) pthread_cond_wait(&turned, &lock);
        answer = 10 * expected;
        pthread_cond_broadcast(&turned);
    }
    pthread_mutex_unlock(&lock);
    return unused;
}

static void *by_lock(void *unused) {
    pthread_mutex_lock(&held);
    got_lock = 1;
    pthread_mutex_unlock(&held);
    return unused;
}

static void *by_time(void *unused) {
    struct timespec nap = {0, 2000000};
    while (!stop) nanosleep(&nap, NULL);
    return unused;
}

int main(void) {
    start_threads();
    pthread_t threads[3];
    pthread_mutex_lock(&held);
    CHECK(!pthread_create(&threads[0], NULL, by_turns, NULL) && !pthread_create(&threads[1], NULL, by_lock, NULL));
    CHECK(!pthread_create(&threads[2], NULL, by_time, NULL));
    for (int i = 1; i <= 5; i++) {
        beat();
        pthread_mutex_lock(&lock);
        turn = i;
        pthread_cond_broadcast(&turned);
        while (answer < 10 * i) pthread_cond_wait(&turned, &lock);
        pthread_mutex_unlock(&lock);
        CHECK(!got_lock);
    }
    stop = 1;
    pthread_mutex_unlock(&held);
    for (int i = 0; i < 3; i++) CHECK(!pthread_join(threads[i], NULL));
    CHECK(got_lock);
    beat();
    say("answer %d", answer);
    return done("thread_waiting");
}
