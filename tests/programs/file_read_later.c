// Files of the system are opened for reading for the first time after a cut, each once.
// ranks: 2
#include "state.h"

static void has_text(const char *name) {
    FILE *file = fopen(name, "r");
    CHECK(file && fgetc(file) != EOF && fclose(file) == 0);
}

int main(void) {
    start();
    has_text("/etc/group");
    for (int i = 0; i < 2; i++) beat();
    has_text("/etc/passwd");
    for (int i = 0; i < 2; i++) beat();
    say("read");
    return done("file_read_later");
}
