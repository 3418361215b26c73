/* Calls every communication procedure, part by part: surface FOLDER, on an even number of ranks. */
#include "surface.h"

int rank, size, partner;

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(size % 2 == 0 && argc == 2);
    partner = rank ^ 1;
    point_to_point();
    persistent();
    completion();
    collectives();
    neighbourhood();
    communicators();
    one_sided();
    file_io(argv[1]);
    mpi4();
    MPI_Finalize();
    count_print(rank);
    return 0;
}
