// What other programs about MPI files leave out: nonblocking calls by the file's own pointer, reads by the shared one, room
// that is reserved, atomic mode, and appending.
#include "state.h"

int main(void) {
    start();
    const char *data = "io_rest.data", *log = "io_rest.log";
    MPI_File file;
    MPI_Request request;
    MPI_Offset at;
    int out[2] = {rank, 100 + rank}, in[2], sum = 0, flag;
    // By one rank: several race in Open MPI, where one that asks late how long the file is finds it long already, and leaves
    // out a broadcast that the others take part in.
    if (rank == 0) {
        MPI_File_open(MPI_COMM_SELF, data, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
        MPI_File_set_size(file, 0);
        MPI_File_preallocate(file, 8 * size);
        MPI_File_close(&file);
    }
    meet();
    MPI_File_open(MPI_COMM_WORLD, data, MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_set_atomicity(file, 1);
    beat();
    MPI_File_get_size(file, &at);
    MPI_File_get_atomicity(file, &flag);
    CHECK(at == 8 * size && flag);
    MPI_File_seek(file, 8 * rank, MPI_SEEK_SET);
    MPI_File_iwrite(file, out, 2, MPI_INT, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    beat();
    MPI_File_sync(file);
    meet();
    MPI_File_seek(file, 8 * after, MPI_SEEK_SET);
    MPI_File_iread(file, in, 2, MPI_INT, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_File_get_position(file, &at);
    CHECK(in[0] == after && in[1] == 100 + after && at == 8 * (after + 1));
    beat();
    MPI_File_iread_at_all(file, 8 * before, in, 2, MPI_INT, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(in[0] == before && in[1] == 100 + before);
    MPI_File_set_atomicity(file, 0);
    beat();
    // Each rank reads another part by the shared pointer, which the others see.
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    meet();
    MPI_File_read_shared(file, in, 2, MPI_INT, MPI_STATUS_IGNORE);
    CHECK(in[1] == 100 + in[0] && total(MPI_COMM_WORLD, in[0]) == size * (size - 1) / 2);
    MPI_File_get_position_shared(file, &at);
    CHECK(at == 8 * size);
    meet();
    MPI_File_write_ordered(file, out, 1, MPI_INT, MPI_STATUS_IGNORE);
    beat();
    MPI_File_sync(file);
    meet();
    MPI_File_read_at(file, 8 * size + 4 * after, in, 1, MPI_INT, MPI_STATUS_IGNORE);
    CHECK(in[0] == after);
    MPI_File_close(&file);
    beat();
    if (rank == 0) {
        MPI_File_open(MPI_COMM_SELF, log, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
        MPI_File_set_size(file, 0);
        MPI_File_close(&file);
    }
    for (int i = 0; i < 3 && rank == 0; i++) {
        MPI_File_open(MPI_COMM_SELF, log, MPI_MODE_WRONLY | MPI_MODE_APPEND, MPI_INFO_NULL, &file);
        MPI_File_get_position(file, &at);
        CHECK(at == 4 * i);
        MPI_File_write(file, &i, 1, MPI_INT, MPI_STATUS_IGNORE);
        MPI_Send(NULL, 0, MPI_INT, 1, i, MPI_COMM_WORLD);
        MPI_File_get_size(file, &at);
        CHECK(at == 4 * (i + 1));
        MPI_File_close(&file);
    }
    for (int i = 0; i < 3 && rank == 1; i++) MPI_Recv(NULL, 0, MPI_INT, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    beat();
    if (rank == 0) {
        int all[3];
        MPI_File_open(MPI_COMM_SELF, log, MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
        MPI_File_read(file, all, 3, MPI_INT, MPI_STATUS_IGNORE);
        MPI_File_close(&file);
        for (int i = 0; i < 3; i++) sum += all[i];
        CHECK(sum == 3);
    }
    beat();
    say("read %d", in[0]);
    return done("io_rest");
}
