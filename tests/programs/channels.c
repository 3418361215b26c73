// A pipe, a pair of sockets and a counter that the program has to itself, with what waits in them.
#include "state.h"
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

int main(void) {
    start();
    int pipe_ends[2], sockets[2], counter;
    char c = 0;
    uint64_t number = 3;
    beat();
    CHECK(pipe(pipe_ends) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
    CHECK((counter = eventfd(0, EFD_NONBLOCK)) >= 0);
    for (int i = 0; i < 3; i++) {
        CHECK(write(pipe_ends[1], "p", 1) == 1 && write(sockets[i % 2], "s", 1) == 1 && write(counter, &number, 8) == 8);
        beat();
        CHECK(read(pipe_ends[0], &c, 1) == 1 && c == 'p');
        CHECK(read(sockets[1 - i % 2], &c, 1) == 1 && c == 's');
        CHECK(read(counter, &number, 8) == 8 && number == 3 && read(counter, &number, 8) < 0);
    }
    close(pipe_ends[1]);
    beat();
    CHECK(read(pipe_ends[0], &c, 1) == 0);
    say("through");
    return done("channels");
}
