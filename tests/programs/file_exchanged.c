// Names that are exchanged, and one that is only given where nothing has it.
#define _GNU_SOURCE
#include "state.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static int holds(const char *name, const char *wanted) {
    char found[20] = "";
    FILE *in = fopen(name, "r");
    int read = in && fgets(found, sizeof found, in) != NULL;
    if (in) fclose(in);
    return read && strcmp(found, wanted) == 0;
}

static int write_to(const char *name, const char *text) {
    FILE *out = fopen(name, "w");
    return out && fputs(text, out) >= 0 && fclose(out) == 0;
}

int main(void) {
    start();
    char names[3][40];
    for (int i = 0; i < 3; i++) sprintf(names[i], "file_exchanged.%d.%d", rank, i);
    CHECK(write_to(names[0], "one") && write_to(names[1], "other"));
    for (int i = 0; i < 5; i++) {
        beat();
        // Not all file systems can.
        if (renameat2(AT_FDCWD, names[0], AT_FDCWD, names[1], RENAME_EXCHANGE) < 0) {
            CHECK(i == 0 && errno == EINVAL);
            break;
        }
        CHECK(holds(names[0], i % 2 ? "one" : "other") && holds(names[1], i % 2 ? "other" : "one"));
        CHECK(renameat2(AT_FDCWD, names[0], AT_FDCWD, names[1], RENAME_NOREPLACE) < 0 && errno == EEXIST);
        CHECK(renameat2(AT_FDCWD, names[0], AT_FDCWD, names[2], RENAME_EXCHANGE) < 0 && errno == ENOENT);
        CHECK(renameat2(AT_FDCWD, names[0], AT_FDCWD, names[2], RENAME_NOREPLACE) == 0 && access(names[0], F_OK) < 0);
        beat();
        CHECK(renameat2(AT_FDCWD, names[2], AT_FDCWD, names[0], 0) == 0 && access(names[2], F_OK) < 0);
    }
    CHECK(unlink(names[0]) == 0 && unlink(names[1]) == 0);
    say("two names");
    return done("file_exchanged");
}
