// Another working folder, relative names in it, and the mask for new files.
#include "state.h"
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int main(void) {
    start();
    char name[40], here[4096], later[4096];
    struct stat facts;
    sprintf(name, "folder.%d", rank);
    mkdir(name, 0700);
    CHECK(chdir(name) == 0 && getcwd(here, sizeof here));
    umask(0027);
    unlink("within");
    for (int i = 0; i < 4; i++) beat();
    CHECK(getcwd(later, sizeof later) && !strcmp(here, later));
    int made = open("within", O_CREAT | O_WRONLY, 0666);
    CHECK(made >= 0 && fstat(made, &facts) == 0 && (facts.st_mode & 0777) == 0640);
    close(made);
    for (int i = 0; i < 4; i++) beat();
    CHECK(access("within", F_OK) == 0 && umask(0) == 0027);
    CHECK(chdir("..") == 0);
    beat();
    say("in %s", strrchr(here, '/') + 1);
    return done("folder");
}
