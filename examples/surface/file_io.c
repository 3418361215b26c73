/* MPI-IO: blocking, nonblocking and split, by explicit offset, individual and shared pointer. */
#include "surface.h"

enum { N = 32, B = N * sizeof(int) };

static int out[N], in[N];

static void explicit_offsets(MPI_File file)
{
    MPI_Offset mine = (MPI_Offset)rank * B, other = (MPI_Offset)partner * B;
    MPI_Request r;
    MPI_Status status;
    int count;
    MPI_File_write_at(file, mine, out, N, MPI_INT, &status);
    MPI_File_write_at_all(file, mine, out, N, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_iwrite_at(file, mine, out, N, MPI_INT, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_File_iwrite_at_all(file, mine, out, N, MPI_INT, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_read_at(file, other, in, N, MPI_INT, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK(count == N && in[1] == partner * N + 1);
    MPI_File_read_at_all(file, mine, in, N, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_iread_at(file, other, in, N, MPI_INT, &r);
    MPI_Waitall(1, &r, MPI_STATUSES_IGNORE);
    MPI_File_iread_at_all(file, other, in, N, MPI_INT, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    CHECK(in[N - 1] == partner * N + N - 1);
    MPI_File_write_at_all_begin(file, mine, out, N, MPI_INT);
    MPI_File_write_at_all_end(file, out, MPI_STATUS_IGNORE);
    MPI_File_read_at_all_begin(file, mine, in, N, MPI_INT);
    MPI_File_read_at_all_end(file, in, &status);
    CHECK(in[0] == rank * N);
}

static void individual_pointers(MPI_File file)
{
    MPI_Request r;
    MPI_Offset where;
    MPI_File_set_view(file, (MPI_Offset)rank * B, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    MPI_File_seek(file, 0, MPI_SEEK_SET);
    MPI_File_write(file, out, N / 2, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_write_all(file, out + N / 2, N / 2, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_get_position(file, &where);
    CHECK(where == N);
    MPI_File_seek(file, 0, MPI_SEEK_SET);
    MPI_File_read(file, in, N / 2, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_read_all(file, in + N / 2, N / 2, MPI_INT, MPI_STATUS_IGNORE);
    CHECK(in[N - 1] == rank * N + N - 1);
    MPI_File_seek(file, 0, MPI_SEEK_SET);
    MPI_File_iwrite(file, out, N, MPI_INT, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_File_seek(file, 0, MPI_SEEK_SET);
    MPI_File_iwrite_all(file, out, N, MPI_INT, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_File_seek(file, 0, MPI_SEEK_SET);
    MPI_File_iread(file, in, N, MPI_INT, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_File_seek(file, 0, MPI_SEEK_SET);
    MPI_File_iread_all(file, in, N, MPI_INT, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_File_seek(file, 0, MPI_SEEK_SET);
    MPI_File_write_all_begin(file, out, N, MPI_INT);
    MPI_File_write_all_end(file, out, MPI_STATUS_IGNORE);
    MPI_File_seek(file, 0, MPI_SEEK_SET);
    MPI_File_read_all_begin(file, in, N, MPI_INT);
    MPI_File_read_all_end(file, in, MPI_STATUS_IGNORE);
    CHECK(in[2] == rank * N + 2);
    MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
}

static void shared_pointer(MPI_File file)
{
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    MPI_File_write_shared(file, out, B, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    MPI_File_write_ordered(file, out, B, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    MPI_File_read_ordered(file, in, B, MPI_BYTE, MPI_STATUS_IGNORE);
    CHECK(in[0] == rank * N);
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    MPI_File_read_shared(file, in, B, MPI_BYTE, MPI_STATUS_IGNORE);
}

void file_io(const char *folder)
{
    char name[4096];
    MPI_File file;
    MPI_Offset bytes;
    snprintf(name, sizeof name, "%s/surface.bin", folder);
    for (int i = 0; i < N; i++)
        out[i] = rank * N + i;
    int made = MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    CHECK(made == MPI_SUCCESS);
    MPI_File_set_size(file, (MPI_Offset)size * B);
    MPI_File_preallocate(file, (MPI_Offset)size * B);
    explicit_offsets(file);
    individual_pointers(file);
    shared_pointer(file);
    MPI_File_get_size(file, &bytes);
    CHECK(bytes >= (MPI_Offset)size * B); /* Open MPI may preallocate more than it was asked for */
    MPI_File_close(&file);
    if (rank == 0)
        MPI_File_delete(name, MPI_INFO_NULL);
}
