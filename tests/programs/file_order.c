// MPI files that one rank knows by other numbers than the rest: it had opened one of its own before.
#include "state.h"

int main(void) {
    start();
    MPI_File own, first, second;
    int one = 100 + rank, two = 200 + rank, in;
    int mode = MPI_MODE_CREATE | MPI_MODE_RDWR;
    if (rank == 0) MPI_File_open(MPI_COMM_SELF, "file_order.own.data", mode, MPI_INFO_NULL, &own);
    MPI_File_open(MPI_COMM_WORLD, "file_order.1.data", mode, MPI_INFO_NULL, &first);
    if (rank == 0) MPI_File_close(&own);
    MPI_File_open(MPI_COMM_WORLD, "file_order.2.data", mode, MPI_INFO_NULL, &second);
    for (int i = 0; i < 3; i++) {
        MPI_File_write_at_all(first, rank * sizeof(int), &one, 1, MPI_INT, MPI_STATUS_IGNORE);
        MPI_File_write_at_all(second, rank * sizeof(int), &two, 1, MPI_INT, MPI_STATUS_IGNORE);
        beat();
        MPI_File_read_at_all(first, rank * sizeof(int), &in, 1, MPI_INT, MPI_STATUS_IGNORE);
        CHECK(in == one++);
        MPI_File_read_at_all(second, rank * sizeof(int), &in, 1, MPI_INT, MPI_STATUS_IGNORE);
        CHECK(in == two++);
        meet();
    }
    MPI_File_close(&first);
    MPI_File_close(&second);
    beat();
    say("last %d", in);
    return done("file_order");
}
