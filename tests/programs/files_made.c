// Files, links and folders that were not there before, made in every step: at a cut those of the steps after it are not there
// yet, though the run that was saved has made them since.
#include "state.h"
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static char name[80];

static const char *named(const char *kind, int step) {
    sprintf(name, "files_made.%d.%s.%d", rank, kind, step);
    return name;
}

int main(void) {
    start();
    struct stat facts;
    for (int i = 0; i < 6; i++) {
        int own = open(named("own", i), O_WRONLY | O_CREAT | O_EXCL, 0600);
        CHECK(own >= 0 && write(own, "12345", 5) == 5 && close(own) == 0);
        CHECK(mkdir(named("folder", i), 0700) == 0);
        strcat(name, "/file");
        FILE *within = fopen(name, "wx");
        CHECK(within && fclose(within) == 0);
        beat();

        FILE *log = fopen(named("log", i), "a");
        CHECK(log && fputc('x', log) == 'x' && fclose(log) == 0);
        CHECK(stat(name, &facts) == 0 && facts.st_size == 1);
        CHECK(symlink("nowhere", named("link", i)) == 0);
        beat();

        int next = 0;
        while (access(named("numbered", next), F_OK) == 0) next++;
        CHECK(next == i && fclose(fopen(name, "w")) == 0);
        char draft[80];
        strcpy(draft, named("draft", 0));
        CHECK(fclose(fopen(draft, "w")) == 0);
        CHECK(access(named("final", i), F_OK) < 0 && rename(draft, name) == 0 && access(name, F_OK) == 0);
        beat();

        MPI_File file;
        sprintf(name, "files_made.all.%d", i);
        int mode = MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_WRONLY;
        CHECK(MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &file) == MPI_SUCCESS);
        MPI_File_close(&file);
        // What was made before stays.
        for (int old = 0; old <= i; old++) CHECK(stat(named("own", old), &facts) == 0 && facts.st_size == 5);
    }
    beat();
    say("made");
    return done("files_made");
}
