// A socket that is open for a while: no cut can lie within that time.
// cut: middle
// refuses: is socket:
#include "state.h"
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

int main(void) {
    start();
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size_of = sizeof own;
    char c = 0;
    for (int i = 0; i < 3; i++) beat();
    int end = socket(AF_INET, SOCK_DGRAM, 0);
    CHECK(bind(end, (struct sockaddr *)&own, sizeof own) == 0 && getsockname(end, (struct sockaddr *)&own, &size_of) == 0);
    CHECK(sendto(end, "x", 1, 0, (struct sockaddr *)&own, sizeof own) == 1);
    for (int i = 0; i < 2; i++) beat();
    CHECK(recv(end, &c, 1, 0) == 1 && c == 'x');
    close(end);
    for (int i = 0; i < 3; i++) beat();
    say("through");
    return done("socket_open");
}
