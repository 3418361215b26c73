/* Children by fork, exec, posix_spawn, popen and system; descriptors of the host cannot be reached. */
#include "check.h"
extern char **environ;
static volatile int got;
static void handler(int signal) { got = signal; }

int main(int argc, char **argv) {
    if (argc > 1) return 42;
    int status;
    pid_t pid;
    char *args[] = {argv[0], "child", 0};
    signal(SIGUSR1, handler);
    CHECK(posix_spawn(&pid, "/proc/self/exe", 0, 0, args, environ) == 0);
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 42);
    raise(SIGUSR1);
    CHECK(got == SIGUSR1);
    CHECK(system("exit 7") == 7 << 8);
    char line[64] = "";
    FILE *pipe_ = popen("cat /proc/self/comm", "r");
    CHECK(fgets(line, sizeof line, pipe_) && !strcmp(line, "cat\n") && pclose(pipe_) == 0);
    fflush(stdout);
    if ((pid = fork()) == 0) {
        got = 0;
        raise(SIGUSR1);
        char *m = malloc(1 << 24);
        m[1 << 23] = 1;
        signal(SIGUSR2, handler);
        raise(SIGUSR2);
        int file = open("/dev/null", O_RDONLY);
        if (got != SIGUSR2 || file < 0 || dup2(file, 200) != 200 || !in_range(m)) _exit(1);
        if ((pid = fork()) == 0) _exit(9);
        if (waitpid(pid, &status, 0) != pid || WEXITSTATUS(status) != 9) _exit(3);
        execl("/proc/self/exe", argv[0], "child", (char *)0);
        _exit(2);
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 42);
    struct sigaction old;
    CHECK(sigaction(SIGUSR2, 0, &old) == 0 && old.sa_handler == SIG_DFL);
    char self[512] = "";
    CHECK(readlink("/proc/self/exe", self, 511) > 0 && !strcmp(self, argv[0]));
    int file = open("/dev/null", O_RDONLY);
    CHECK(file == 3 && dup2(3, 50) == 50 && close(50) == 0 && close(50) == -1 && errno == EBADF);
    CHECK(fcntl(3, F_DUPFD, 20) == 20 && close(20) == 0);
    int ends[2];
    CHECK(pipe(ends) == 0 && ends[0] == 4 && ends[1] == 5 && close(4) == 0 && close(5) == 0);
    CHECK(close(900) == -1 && errno == EBADF && dup2(3, 900) == -1 && errno == EBUSY);
    CHECK(close_range(3, ~0U, 0) == 0 && fcntl(900, F_GETFD) >= 0 && open("/dev/null", O_RDONLY) == 3);
    return finish();
}
