// Files of MPI in a folder with a colon in its name, which ROMIO takes for the end of a file system's.
#include "state.h"
#include <sys/stat.h>
#include <unistd.h>

int main(void) {
    start();
    MPI_File file, other;
    int number;
    if (rank == 0) mkdir("file_12:30", 0700);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(chdir("file_12:30") == 0);
    CHECK(MPI_File_open(MPI_COMM_WORLD, "both", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file) == MPI_SUCCESS);
    for (int i = 0; i < 3; i++) {
        number = 10 * i + rank;
        MPI_File_write_at(file, rank * sizeof number, &number, 1, MPI_INT, MPI_STATUS_IGNORE);
        beat();
        number = -1;
        MPI_File_read_at(file, rank * sizeof number, &number, 1, MPI_INT, MPI_STATUS_IGNORE);
        CHECK(number == 10 * i + rank);
        CHECK(MPI_File_open(MPI_COMM_WORLD, "later", MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &other) == MPI_SUCCESS);
        MPI_File_write_at(other, rank * sizeof number, &number, 1, MPI_INT, MPI_STATUS_IGNORE);
        MPI_File_close(&other);
        beat();
        CHECK(MPI_File_open(MPI_COMM_WORLD, "later", MPI_MODE_RDONLY, MPI_INFO_NULL, &other) == MPI_SUCCESS);
        beat();
        MPI_File_read_at(other, rank * sizeof number, &number, 1, MPI_INT, MPI_STATUS_IGNORE);
        CHECK(number == 10 * i + rank);
        MPI_File_close(&other);
    }
    MPI_File_close(&file);
    beat();
    say("read %d", number);
    return done("file_colon");
}
