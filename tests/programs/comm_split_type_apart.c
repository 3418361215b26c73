// A communicator of the ranks of a node, kept where MPI sees other nodes: MPICH takes two ranks each for those of a
// node, Open MPI all.
// ranks: 4
// setting: MPIR_CVAR_NUM_CLIQUES=2
#include "state.h"

int main(void) {
    start();
    MPI_Comm node, some;
    int n, m = 0, got;
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    MPI_Get_library_version(version, &got);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, -rank, MPI_INFO_NULL, &node);
    MPI_Comm_split_type(MPI_COMM_WORLD, rank ? MPI_COMM_TYPE_SHARED : MPI_UNDEFINED, 0, MPI_INFO_NULL, &some);
    MPI_Comm_size(node, &n);
    if (strstr(version, "Open MPI")) CHECK(n == size);
    if (strstr(version, "MPICH Version")) CHECK(n == size / 2);
    if (rank) MPI_Comm_size(some, &m);
    for (int i = 0; i < 3; i++) {
        CHECK(total(node, 1) == n);
        if (rank) CHECK(total(some, 1) == m);
        exchange(node, i);
        beat();
    }
    MPI_Comm_size(node, &got);
    CHECK(got == n && (some == MPI_COMM_NULL) == (rank == 0));
    MPI_Comm_free(&node);
    if (rank) MPI_Comm_free(&some);
    beat();
    return done("comm_split_type_apart");
}
