// Threads come and gone between events, with keys, destructors, and stacks of their own size.
#include "state.h"
#include <pthread.h>

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int destroyed, made;

static void destroy(void *value) { destroyed += *(int *)value; }
static void make(void) { made += pthread_key_create(&key, destroy) == 0; }

static void *live(void *value) {
    char room[200000];
    pthread_once(&once, make);
    pthread_setspecific(key, value);
    memset(room, 7, sizeof room);
    return room[sizeof room - 1] == 7 ? pthread_getspecific(key) : NULL;
}

int main(void) {
    start_threads();
    int values[6] = {1, 10, 100, 1000, 10000, 100000};
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 1 << 20);
    for (int i = 0; i < 6; i++) {
        pthread_t thread;
        void *result;
        CHECK(!pthread_create(&thread, i % 2 ? &attributes : NULL, live, &values[i]));
        if (i % 3 == 0) beat();
        CHECK(!pthread_join(thread, &result) && result == &values[i]);
        beat();
    }
    CHECK(destroyed == 111111 && made == 1);
    say("destroyed %d", destroyed);
    return done("thread_keys");
}
