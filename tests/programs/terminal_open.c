// A pseudo-terminal that is open for a while: no cut can lie within that time.
// cut: middle
// refuses: is /dev/
#define _GNU_SOURCE
#include "state.h"
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int main(void) {
    start();
    char line[8] = "";
    for (int i = 0; i < 3; i++) beat();
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    CHECK(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    int terminal = open(ptsname(master), O_RDWR | O_NOCTTY);
    CHECK(terminal >= 0);
    for (int i = 0; i < 2; i++) beat();
    CHECK(write(master, "hey\n", 4) == 4 && read(terminal, line, 8) == 4 && strcmp(line, "hey\n") == 0);
    close(terminal), close(master);
    for (int i = 0; i < 3; i++) beat();
    say("heard");
    return done("terminal_open");
}
