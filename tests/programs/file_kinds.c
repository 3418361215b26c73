// A file that is written and read in all ways that are left: collectively, in order, pending, in two steps; its handler.
// refuses: a split collective of a file is not ended
#include "state.h"

enum { N = 50 };

static int failures;

static void failed(MPI_File *file, int *code, ...) {
    (void)code;
    failures += *file != MPI_FILE_NULL;
}

static void reads(MPI_File file, int who) {
    int in[N];
    memset(in, 0, sizeof in);
    MPI_File_seek(file, (MPI_Offset)who * N, MPI_SEEK_SET);
    MPI_File_read(file, in, N, MPI_INT, MPI_STATUS_IGNORE);
    CHECK(filled(in, N, who));
}

int main(void) {
    start();
    int out[N], in[N], all;
    MPI_File file;
    MPI_Group group;
    MPI_Errhandler handler;
    MPI_Aint extent;
    MPI_Request request;
    MPI_Status status;
    MPI_File_open(MPI_COMM_WORLD, "file_kinds.data", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    MPI_File_create_errhandler(failed, &handler);
    MPI_File_set_errhandler(file, handler);
    beat();
    fill(out, N, rank);
    MPI_File_seek(file, (MPI_Offset)rank * N, MPI_SEEK_SET);
    MPI_File_write_all(file, out, N, MPI_INT, &status);
    MPI_File_sync(file);
    meet();
    reads(file, after);
    MPI_File_seek(file, (MPI_Offset)before * N, MPI_SEEK_SET);
    memset(in, 0, sizeof in);
    MPI_File_read_all(file, in, N, MPI_INT, &status);
    CHECK(filled(in, N, before));
    beat();
    fill(out, N, size + rank);
    MPI_File_iwrite_at(file, (MPI_Offset)(size + rank) * N, out, N, MPI_INT, &request);
    beat();
    MPI_Wait(&request, &status);
    MPI_File_sync(file);
    meet();
    reads(file, size + after);
    // In the order of the ranks, by the pointer that they share.
    MPI_File_seek_shared(file, (MPI_Offset)2 * size * N, MPI_SEEK_SET);
    fill(out, N, 2 * size + rank);
    MPI_File_write_ordered(file, out, N, MPI_INT, &status);
    MPI_File_sync(file);
    meet();
    reads(file, 2 * size + before);
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    memset(in, 0, sizeof in);
    MPI_File_read_ordered(file, in, N, MPI_INT, &status);
    CHECK(filled(in, N, rank));
    beat();
    // In two steps, between which nobody is cut.
    fill(out, N, 3 * size + rank);
    MPI_File_write_at_all_begin(file, (MPI_Offset)(3 * size + rank) * N, out, N, MPI_INT);
    MPI_File_write_at_all_end(file, out, &status);
    MPI_File_sync(file);
    meet();
    reads(file, 3 * size + after);
    MPI_File_get_group(file, &group);
    MPI_Group_size(group, &all);
    MPI_Group_free(&group);
    MPI_File_get_type_extent(file, MPI_INT, &extent);
    CHECK(all == size && extent == sizeof(int));
    MPI_File_call_errhandler(file, MPI_ERR_OTHER);
    CHECK(failures == 1);
    MPI_Errhandler_free(&handler);
    beat();
    MPI_File_call_errhandler(file, MPI_ERR_OTHER);
    CHECK(failures == 2);
    MPI_File_close(&file);
    beat();
    if (rank == 0) MPI_File_delete("file_kinds.data", MPI_INFO_NULL);
    beat();
    say("through");
    return done("file_kinds");
}
