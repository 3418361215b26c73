// An MPI file with a view: every rank its own columns, written and read by halves.
#include "state.h"

int main(void) {
    start();
    MPI_File file;
    MPI_Datatype column, kind, shape;
    MPI_Offset at, offset;
    int out[4], in[4];
    char how[MPI_MAX_DATAREP_STRING];
    MPI_File_open(MPI_COMM_WORLD, "file_view.data", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_set_size(file, 0);
    MPI_Type_vector(8, 1, size, MPI_INT, &column);
    MPI_Type_commit(&column);
    MPI_File_set_view(file, 4 * rank, MPI_INT, column, "native", MPI_INFO_NULL);
    MPI_Type_free(&column);
    for (int i = 0; i < 2; i++) {
        fill(out, 4, rank + i);
        MPI_File_write(file, out, 4, MPI_INT, MPI_STATUS_IGNORE);
        beat();
        MPI_File_get_position(file, &at);
        CHECK(at == 4 * (i + 1));
    }
    MPI_File_get_view(file, &offset, &kind, &shape, how);
    CHECK(offset == 4 * rank && !strcmp(how, "native"));
    MPI_File_sync(file);
    meet();
    MPI_File_seek(file, 0, MPI_SEEK_SET);
    for (int i = 0; i < 2; i++) {
        MPI_File_read(file, in, 4, MPI_INT, MPI_STATUS_IGNORE);
        CHECK(filled(in, 4, rank + i));
        beat();
    }
    MPI_File_get_size(file, &at);
    CHECK(at == 4 * 8 * size);
    // One that begins far behind the file's end, where nothing is written.
    MPI_Offset far = ((MPI_Offset)5 << 30) + 4 * rank;
    MPI_File_set_view(file, far, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    beat();
    MPI_File_get_byte_offset(file, 2, &at);
    CHECK(at == far + 8);
    MPI_File_close(&file);
    CHECK(file == MPI_FILE_NULL);
    beat();
    say("last %d", in[3]);
    return done("file_view");
}
