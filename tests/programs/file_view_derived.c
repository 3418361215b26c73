// The view of an MPI file by derived types that are freed: asked for, its handles are kept for a while.
#include "state.h"

static void are(MPI_Datatype element, MPI_Datatype shape) {
    int bytes;
    MPI_Aint from, extent;
    MPI_Type_size(element, &bytes);
    MPI_Type_get_extent(element, &from, &extent);
    CHECK(bytes == 8 && from == 0 && extent == 8);
    MPI_Type_size(shape, &bytes);
    MPI_Type_get_extent(shape, &from, &extent);
    CHECK(bytes == 32 && from == 0 && extent == 8 * (3 * size + 1));
}

int main(void) {
    start();
    enum { N = 8 };
    MPI_File file;
    MPI_Datatype pair, columns, element, shape;
    MPI_Offset at;
    int out[N], in[N];
    char how[MPI_MAX_DATAREP_STRING];
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_vector(4, 1, size, pair, &columns);
    MPI_Type_commit(&pair);
    MPI_Type_commit(&columns);
    MPI_File_open(MPI_COMM_WORLD, "file_view_derived.data", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_set_size(file, 0);
    MPI_File_set_view(file, 8 * rank, pair, columns, "native", MPI_INFO_NULL);
    MPI_Type_free(&pair), MPI_Type_free(&columns);
    fill(out, N, rank);
    MPI_File_write_at_all(file, 0, out, N, MPI_INT, MPI_STATUS_IGNORE);
    for (int i = 0; i < 3; i++) {
        beat();
        MPI_File_get_view(file, &at, &element, &shape, how);
        CHECK(at == 8 * rank && !strcmp(how, "native"));
        are(element, shape);
        beat();
        are(element, shape);
        MPI_Type_free(&element), MPI_Type_free(&shape);
        MPI_File_read_at_all(file, i, in, N - 2 * i, MPI_INT, MPI_STATUS_IGNORE);
        for (int k = 0; k < N - 2 * i; k++) CHECK(in[k] == out[k + 2 * i]);
    }
    MPI_File_get_size(file, &at);
    CHECK(at == 4 * N * size);
    MPI_File_close(&file);
    beat();
    say("bytes %d", (int)at);
    return done("file_view_derived");
}
