// MPI files with their own pointers: for reading, for reading until it is deleted, for appending, and closed ones.
#include "state.h"

int main(void) {
    start();
    MPI_File file, log, gone;
    MPI_Offset at;
    MPI_Status status;
    int mode, n, numbers[6], in[6];
    char name[40];
    fill(numbers, 6, rank);
    sprintf(name, "file_individual.%d.gone", rank);
    FILE *make = fopen(name, "w");
    fwrite(numbers, sizeof(int), 6, make);
    fclose(make);
    MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDONLY | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &gone);
    sprintf(name, "file_individual.%d.data", rank);
    MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
    MPI_File_set_size(file, 0);
    MPI_File_write_at(file, 0, numbers, 6, MPI_INT, MPI_STATUS_IGNORE);
    beat();
    MPI_File_close(&file);
    MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    sprintf(name, "file_individual.%d.log", rank);
    MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &log);
    MPI_File_set_size(log, 0);
    for (int i = 0; i < 3; i++) {
        MPI_File_read(file, in + 2 * i, 8, MPI_BYTE, &status);
        MPI_Get_count(&status, MPI_BYTE, &n);
        CHECK(n == 8);
        MPI_File_write(log, "beat\n", 5, MPI_CHAR, MPI_STATUS_IGNORE);
        beat();
        MPI_File_get_position(file, &at);
        CHECK(at == 8 * (i + 1));
    }
    MPI_File_get_amode(file, &mode);
    CHECK(mode == MPI_MODE_RDONLY && filled(in, 6, rank));
    MPI_File_get_size(log, &at);
    CHECK(at == 15);
    MPI_File_close(&file);
    beat();
    MPI_File_read(gone, in, 6, MPI_INT, MPI_STATUS_IGNORE);
    CHECK(filled(in, 6, rank));
    MPI_File_close(&gone);
    MPI_File_close(&log);
    beat();
    say("last %d", in[5]);
    return done("file_individual");
}
