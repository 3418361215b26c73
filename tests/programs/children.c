// Children that have ended, by system, popen and posix_spawn; they see nothing of what MPI's processes are started with.
#include "state.h"
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

int main(void) {
    start();
    int status, number;
    setenv("OF_THE_PROGRAM", "yes", 1);
    for (int i = 0; i < 3; i++) {
        CHECK(system("test \"$OF_THE_PROGRAM\" = yes && test -z \"$LD_PRELOAD$LD_BIND_NOW$GLIBC_TUNABLES\"") == 0);
        beat();
        FILE *pipe = popen("echo $((6 * 7))", "r");
        CHECK(pipe && fscanf(pipe, "%d", &number) == 1 && number == 42 && pclose(pipe) == 0);
        beat();
        pid_t child;
        char *words[] = {"sh", "-c", "exit 5", NULL};
        CHECK(posix_spawn(&child, "/bin/sh", NULL, NULL, words, environ) == 0);
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 5);
        beat();
    }
    say("said %d", number);
    return done("children");
}
