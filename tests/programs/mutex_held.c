// Mutexes of all kinds that the main thread holds over a cut, with one that another holds: those that may be locked again
// can be, others are known to be its own, and all can be unlocked.
#include "state.h"
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

enum { NORMAL, RECURSIVE, CHECKED, INHERITING, ROBUST, ALL };
static pthread_mutex_t own[ALL], other = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t written = PTHREAD_RWLOCK_INITIALIZER;
static volatile int turn;

static void make(void) {
    int types[ALL] = {[RECURSIVE] = PTHREAD_MUTEX_RECURSIVE, [CHECKED] = PTHREAD_MUTEX_ERRORCHECK};
    for (int i = 0; i < ALL; i++) {
        pthread_mutexattr_t how;
        pthread_mutexattr_init(&how);
        pthread_mutexattr_settype(&how, types[i] ? types[i] : PTHREAD_MUTEX_NORMAL);
        if (i == INHERITING) pthread_mutexattr_setprotocol(&how, PTHREAD_PRIO_INHERIT);
        if (i == ROBUST) pthread_mutexattr_setrobust(&how, PTHREAD_MUTEX_ROBUST);
        CHECK(pthread_mutex_init(&own[i], &how) == 0);
    }
}

static void take(void) {
    for (int i = 0; i < ALL; i++) CHECK(pthread_mutex_lock(&own[i]) == 0);
    CHECK(pthread_rwlock_wrlock(&written) == 0);
}

static void give(void) {
    CHECK(pthread_mutex_lock(&own[RECURSIVE]) == 0 && pthread_mutex_unlock(&own[RECURSIVE]) == 0);
    CHECK(pthread_mutex_lock(&own[CHECKED]) == EDEADLK && pthread_rwlock_wrlock(&written) == EDEADLK);
    for (int i = 0; i < ALL; i++) CHECK(pthread_mutex_unlock(&own[i]) == 0);
    CHECK(pthread_rwlock_unlock(&written) == 0);
}

static void *holder(void *unused) {
    for (int i = 1; i < 6; i += 2) {
        CHECK(pthread_mutex_lock(&other) == 0);
        turn = i;
        while (turn == i) usleep(100);
        CHECK(pthread_mutex_unlock(&other) == 0);
        turn = i + 2;
        while (turn == i + 2) usleep(100);
    }
    return unused;
}

int main(void) {
    start_threads();
    pthread_t thread;
    make();
    CHECK(!pthread_create(&thread, NULL, holder, NULL));
    for (int i = 1; i < 6; i += 2) {
        take();
        while (turn != i) usleep(100);
        beat();
        CHECK(pthread_mutex_trylock(&other) == EBUSY && pthread_mutex_trylock(&own[NORMAL]) == EBUSY);
        give();
        turn = i + 1;
        while (turn != i + 2) usleep(100);
        turn = 0;
    }
    pthread_join(thread, NULL);
    say("given");
    return done("mutex_held");
}
