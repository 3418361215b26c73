// A program that looks for its own file and its own name.
#define _GNU_SOURCE
#include "state.h"
#include <errno.h>
#include <sys/auxv.h>
#include <unistd.h>

int main(int n, char **words) {
    start();
    char path[4096], *name;
    for (int i = 0; i < 5; i++) {
        beat();
        ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
        CHECK(length > 0);
        path[length] = 0;
        name = strrchr(path, '/') + 1;
        CHECK(!strcmp(name, "own_file") && access(path, X_OK) == 0);
        CHECK(!strcmp(strrchr(words[0], '/') + 1, "own_file") && !strcmp(program_invocation_short_name, "own_file"));
        CHECK(getauxval(AT_PAGESZ) == 4096 && getauxval(AT_EXECFN) && n == 1);
    }
    say("%s", name);
    return done("own_file");
}
