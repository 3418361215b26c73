// An MPI file with a shared pointer.
#include "state.h"

int main(void) {
    start();
    MPI_File file;
    MPI_Offset at, bytes;
    int out, in[16], sum = 0;
    MPI_File_open(MPI_COMM_WORLD, "file_shared.data", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_set_size(file, 0);
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    for (int i = 0; i < 3; i++) {
        out = 10 * i + rank;
        MPI_File_write_ordered(file, &out, 1, MPI_INT, MPI_STATUS_IGNORE);
        meet();
    }
    MPI_File_get_position_shared(file, &at);
    CHECK(at == 3 * size);
    meet();
    MPI_File_write_shared(file, &rank, 1, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_sync(file);
    meet();
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    beat();
    MPI_File_get_size(file, &bytes);
    CHECK(bytes == 16 * size);
    MPI_File_read_at(file, 0, in, 4 * size, MPI_INT, MPI_STATUS_IGNORE);
    for (int i = 0; i < 3 * size; i++) CHECK(in[i] == 10 * (i / size) + i % size);
    for (int i = 3 * size; i < 4 * size; i++) sum += in[i];
    CHECK(sum == size * (size - 1) / 2);
    beat();
    MPI_File_close(&file);
    beat();
    say("sum %d", sum);
    return done("file_shared");
}
