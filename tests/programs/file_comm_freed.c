// An MPI file whose communicator was freed: a restart goes on with a copy as long as the file was at the cut.
#include "state.h"

int main(void) {
    start();
    MPI_Comm comm;
    MPI_File file;
    MPI_Offset bytes;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_File_open(comm, "file_comm_freed.data", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_Comm_free(&comm);
    MPI_File_set_size(file, 0);
    for (int i = 0; i < 4; i++) {
        int out = 10 * i + rank, in = -1;
        MPI_File_write_at_all(file, (i * size + rank) * sizeof(int), &out, 1, MPI_INT, MPI_STATUS_IGNORE);
        MPI_File_sync(file);
        meet();
        MPI_File_get_size(file, &bytes);
        CHECK(bytes == (MPI_Offset)sizeof(int) * size * (i + 1));
        MPI_File_read_at(file, (i * size + after) * sizeof(int), &in, 1, MPI_INT, MPI_STATUS_IGNORE);
        CHECK(in == 10 * i + after);
        meet();
    }
    MPI_File_close(&file);
    beat();
    say("bytes %d", (int)bytes);
    return done("file_comm_freed");
}
