/* Pipes and pairs of sockets that the program has to itself, counters of events and what watches them, saved with what waits
 * in them, made again, and used. */
#include "check.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>

static int own[2], twice, ended[2], blocked[2], pair[2], plain, semaphore, watcher, none;
static volatile int woken;

static void *reader(void *unused) {
    (void)unused;
    char c;
    if (read(blocked[0], &c, 1) == 1 && c == 'w') woken = 1;
    return 0;
}

int main(void) {
    char text[8] = {0}, *much = calloc(1, 200000);
    uint64_t count = 3, got;
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 0x123456789abcdef0}, found[4];
    pthread_t thread;
    CHECK(pipe2(own, O_NONBLOCK | O_CLOEXEC) == 0 && write(own[1], "one", 3) == 3 && write(own[1], "two", 3) == 3);
    CHECK((twice = dup(own[1])) > 0);
    CHECK(pipe(ended) == 0 && write(ended[1], "end", 3) == 3 && close(ended[1]) == 0);
    CHECK(pipe(blocked) == 0 && pthread_create(&thread, 0, reader, 0) == 0);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0);
    CHECK(write(pair[0], "left", 4) == 4 && write(pair[0], "over", 4) == 4 && write(pair[1], "back", 4) == 4);
    CHECK((plain = eventfd(0, EFD_NONBLOCK)) > 0 && write(plain, &count, 8) == 8);
    CHECK((semaphore = eventfd(2, EFD_SEMAPHORE | EFD_NONBLOCK)) > 0 && (none = eventfd(0, EFD_NONBLOCK)) > 0);
    CHECK((watcher = epoll_create1(0)) > 0);
    event.data.fd = none;
    CHECK(epoll_ctl(watcher, EPOLL_CTL_ADD, none, &event) == 0);
    event.data.u64 = 0x123456789abcdef0;
    CHECK(epoll_ctl(watcher, EPOLL_CTL_ADD, pair[1], &event) == 0);
    int large[2], size = 1 << 18;
    CHECK(pipe(large) == 0 && fcntl(large[1], F_SETPIPE_SZ, size) == size && write(large[1], much, 200000) == 200000);
    usleep(50000);

    long round = gate(1);
    CHECK(round < 1000);

    CHECK(read(own[0], text, 8) == 6 && !memcmp(text, "onetwo", 6));
    CHECK(read(own[0], text, 8) < 0 && errno == EAGAIN);
    CHECK(write(twice, "x", 1) == 1 && read(own[0], text, 8) == 1 && fcntl(own[0], F_GETFD) == FD_CLOEXEC);
    CHECK(fcntl(twice, F_GETFD) == 0);
    CHECK(read(ended[0], text, 8) == 3 && read(ended[0], text, 8) == 0);
    CHECK(!woken && write(blocked[1], "w", 1) == 1 && pthread_join(thread, 0) == 0 && woken);
    CHECK(epoll_wait(watcher, found, 4, 0) == 1 && found[0].data.u64 == 0x123456789abcdef0);
    CHECK(read(pair[1], text, 8) == 8 && !memcmp(text, "leftover", 8));
    CHECK(read(pair[0], text, 8) == 4 && !memcmp(text, "back", 4) && read(pair[0], text, 8) < 0);
    CHECK(read(plain, &got, 8) == 8 && got == 3 && read(plain, &got, 8) < 0);
    CHECK(read(semaphore, &got, 8) == 8 && got == 1 && read(semaphore, &got, 8) == 8 && read(semaphore, &got, 8) < 0);
    CHECK(epoll_wait(watcher, found, 4, 0) == 0 && write(none, &count, 8) == 8);
    CHECK(epoll_wait(watcher, found, 4, 1000) == 1 && found[0].data.fd == none);
    CHECK(fcntl(large[0], F_GETPIPE_SZ) == size && read(large[0], much, 200000) == 200000);
    gate(2);
    printf("%ld\n", round);
    return finish();
}
