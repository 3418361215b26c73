// A file with two names: what is written under one of them is there under the other, also where both were there before a cut.
#include "state.h"
#include <sys/stat.h>
#include <unistd.h>

int main(void) {
    start();
    char one[40], other[40];
    struct stat facts, same;
    sprintf(one, "file_names.%d.one", rank);
    sprintf(other, "file_names.%d.other", rank);
    FILE *out = fopen(one, "w");
    CHECK(out && link(one, other) == 0 && fclose(out) == 0);
    for (int i = 0; i < 4; i++) {
        out = fopen(i % 2 ? one : other, "a");
        CHECK(out && fputs("line\n", out) >= 0 && fclose(out) == 0);
        beat();
        CHECK(stat(one, &facts) == 0 && stat(other, &same) == 0);
        CHECK(facts.st_ino == same.st_ino && facts.st_nlink == 2 && same.st_size == 5 * (i + 1));
        beat();
    }
    CHECK(unlink(one) == 0 && stat(one, &facts) < 0 && stat(other, &same) == 0 && same.st_size == 20);
    beat();
    CHECK(unlink(other) == 0 && stat(other, &same) < 0);
    say("20 bytes");
    return done("file_names");
}
