/* Has something that cannot be saved, and sees that the cut is refused; goes on. */
#include "check.h"
int main(int argc, char **argv) {
    int ends[2];
    int nothing = !strcmp(argv[1], "nothing");
    if (!strcmp(argv[1], "socket")) CHECK(socket(AF_INET, SOCK_STREAM, 0) >= 0);
    if (!strcmp(argv[1], "pipe")) CHECK(pipe2(ends, O_DIRECT) == 0);
    CHECK(gate(1) == (nothing ? 0 : 1000));
    return finish();
}
