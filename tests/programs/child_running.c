// A child that runs for a while: no cut can lie within that time.
// cut: middle
// refuses: a child process runs
#include "state.h"
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
    start();
    int status;
    for (int i = 0; i < 3; i++) beat();
    pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    CHECK(child > 0);
    for (int i = 0; i < 2; i++) beat();
    CHECK(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status));
    for (int i = 0; i < 3; i++) beat();
    say("through");
    return done("child_running");
}
