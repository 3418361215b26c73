/* Has something that cannot be saved, and sees that the cut is refused; goes on. */
#include "check.h"
static volatile int blocked;

/* A thread with a signal that waits for it alone. */
static void *blocks(void *unused) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    CHECK(pthread_sigmask(SIG_BLOCK, &set, 0) == 0 && pthread_kill(pthread_self(), SIGUSR1) == 0);
    for (blocked = 1; blocked;) usleep(1000);
    return unused;
}

int main(int argc, char **argv) {
    int ends[2];
    pthread_t thread;
    int nothing = !strcmp(argv[1], "nothing");
    if (!strcmp(argv[1], "socket")) CHECK(socket(AF_INET, SOCK_STREAM, 0) >= 0);
    if (!strcmp(argv[1], "pipe")) CHECK(pipe2(ends, O_DIRECT) == 0);
    if (!strcmp(argv[1], "signal")) {
        CHECK(pthread_create(&thread, 0, blocks, 0) == 0);
        while (!blocked) usleep(1000);
    }
    CHECK(gate(1) == (nothing ? 0 : 1000));
    return finish();
}
