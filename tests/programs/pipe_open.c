// A pipe that is open for a while: no cut can lie within that time.
// cut: middle
// refuses: is pipe:
#include "state.h"
#include <unistd.h>

int main(void) {
    start();
    int ends[2];
    char c = 0;
    for (int i = 0; i < 3; i++) beat();
    CHECK(pipe(ends) == 0 && write(ends[1], "x", 1) == 1);
    for (int i = 0; i < 2; i++) beat();
    CHECK(read(ends[0], &c, 1) == 1 && c == 'x');
    close(ends[0]), close(ends[1]);
    for (int i = 0; i < 3; i++) beat();
    say("through");
    return done("pipe_open");
}
