// Files that are closed at every cut: written, asked about, read, written anew, renamed and removed, each between two events, by
// system calls and by MPI. At the end nothing is left of them.
#include "state.h"
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static char own[40], moved[40], lock[40], shared[] = "file_closed.data";

static void put(const char *name, const char *mode, int i) {
    FILE *out = fopen(name, mode);
    CHECK(out && fprintf(out, "step %d\n", i) == 7 && fclose(out) == 0);
}

static void holds(const char *name, int lines, int first) {
    char line[16], expected[16];
    struct stat facts;
    CHECK(access(name, R_OK) == 0 && stat(name, &facts) == 0 && facts.st_size == 7 * lines);
    FILE *in = fopen(name, "r");
    for (int i = first; i < first + lines; i++) {
        sprintf(expected, "step %d\n", i);
        CHECK(in && fgets(line, sizeof line, in) && !strcmp(line, expected));
    }
    CHECK(!fgets(line, sizeof line, in) && fclose(in) == 0);
}

static void by_mpi(int mode, int i) {
    MPI_File file;
    int number = 100 * i + rank, found = -1;
    CHECK(MPI_File_open(MPI_COMM_WORLD, shared, mode, MPI_INFO_NULL, &file) == MPI_SUCCESS);
    if (mode & MPI_MODE_WRONLY)
        CHECK(MPI_File_write_at(file, rank * sizeof number, &number, 1, MPI_INT, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    else
        CHECK(MPI_File_read_at(file, rank * sizeof number, &found, 1, MPI_INT, MPI_STATUS_IGNORE) == MPI_SUCCESS && found == number);
    MPI_File_close(&file);
}

int main(void) {
    start();
    sprintf(own, "file_closed.%d.data", rank);
    sprintf(moved, "file_closed.%d.moved", rank);
    sprintf(lock, "file_closed.%d.lock", rank);
    unlink(lock);
    for (int i = 0; i < 2; i++) {
        int made = open(lock, O_WRONLY | O_CREAT | O_EXCL, 0600);
        CHECK(made >= 0 && close(made) == 0);
        put(own, "w", i);
        by_mpi(MPI_MODE_CREATE | MPI_MODE_WRONLY, i);
        beat();
        CHECK(open(lock, O_WRONLY | O_CREAT | O_EXCL, 0600) < 0 && unlink(lock) == 0);
        holds(own, 1, i);
        put(own, "a", i + 1);
        beat();
        by_mpi(MPI_MODE_RDONLY, i);
        holds(own, 2, i);
        CHECK(access(lock, F_OK) < 0 && rename(own, moved) == 0 && chmod(moved, 0640) == 0);
        beat();
        struct stat facts;
        CHECK(stat(own, &facts) < 0 && !fopen(own, "r") && stat(moved, &facts) == 0);
        holds(moved, 2, i);
        CHECK(unlink(moved) == 0 && access(moved, F_OK) < 0);
        beat();
        CHECK(!fopen(moved, "r") && access(shared, F_OK) == 0);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) CHECK(MPI_File_delete(shared, MPI_INFO_NULL) == MPI_SUCCESS);
        MPI_Barrier(MPI_COMM_WORLD);
        beat();
        CHECK(access(shared, F_OK) < 0);
    }
    return done("file_closed");
}
