// The environment and the arguments of the program, which it changes.
// arguments: one "two three" ""
#include "state.h"

extern char **environ;

int main(int n, char **words) {
    start();
    CHECK(n == 4 && !strcmp(words[1], "one") && !strcmp(words[2], "two three") && !strcmp(words[3], ""));
    CHECK(!getenv("LD_PRELOAD") && !getenv("GLIBC_TUNABLES") && !getenv("LD_BIND_NOW"));
    setenv("MINE", "first", 1);
    setenv("OTHER", "goes", 1);
    beat();
    unsetenv("OTHER");
    for (int i = 0; i < 3; i++) beat();
    CHECK(!strcmp(getenv("MINE"), "first") && !getenv("OTHER") && getenv("PATH"));
    putenv("MINE=second");
    for (int i = 0; i < 4; i++) beat();
    CHECK(!strcmp(getenv("MINE"), "second"));
    int found = 0;
    for (char **at = environ; *at; at++) found += !strncmp(*at, "MINE=", 5);
    CHECK(found == 1);
    beat();
    say("%s %s", getenv("MINE"), words[2]);
    return done("environment");
}
