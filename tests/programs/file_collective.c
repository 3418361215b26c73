// Collective writes and reads, split in two with others communicating between, and nonblocking ones.
// refuses: a split collective of a file is not ended
#include "state.h"

int main(void) {
    start();
    MPI_File file;
    MPI_Request request;
    int out[2] = {rank, 100 + rank}, in[2];
    MPI_File_open(MPI_COMM_WORLD, "file_collective.data", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_set_size(file, 0);
    MPI_File_write_at_all(file, 8 * rank, out, 2, MPI_INT, MPI_STATUS_IGNORE);
    beat();
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_read_at_all(file, 8 * after, in, 2, MPI_INT, MPI_STATUS_IGNORE);
    CHECK(in[0] == after && in[1] == 100 + after);
    MPI_File_read_at_all_begin(file, 8 * before, in, 2, MPI_INT);
    beat();
    MPI_File_read_at_all_end(file, in, MPI_STATUS_IGNORE);
    CHECK(in[0] == before && in[1] == 100 + before);
    MPI_File_iread_at(file, 8 * after, in, 2, MPI_INT, &request);
    beat();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(in[0] == after);
    MPI_Barrier(MPI_COMM_WORLD);
    out[1]++;
    MPI_File_iwrite_at_all(file, 8 * rank, out, 2, MPI_INT, &request);
    beat();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_iread_at_all(file, 8 * before, in, 2, MPI_INT, &request);
    beat();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(in[0] == before && in[1] == 101 + before);
    MPI_File_close(&file);
    for (int i = 0; i < 2; i++) beat();
    say("read %d", in[1]);
    return done("file_collective");
}
