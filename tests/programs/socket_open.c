// A pair of sockets that is open for a while: no cut can lie within that time.
// cut: middle
// refuses: is socket:
#include "state.h"
#include <sys/socket.h>
#include <unistd.h>

int main(void) {
    start();
    int ends[2];
    char c = 0;
    for (int i = 0; i < 3; i++) beat();
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0 && write(ends[1], "x", 1) == 1);
    for (int i = 0; i < 2; i++) beat();
    CHECK(read(ends[0], &c, 1) == 1 && c == 'x');
    close(ends[0]), close(ends[1]);
    for (int i = 0; i < 3; i++) beat();
    say("through");
    return done("socket_open");
}
