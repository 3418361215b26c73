// A rank goes on only when it sees, in memory that is shared, what the other writes later, and no message tells of it: at
// one cut the others give up waiting for it, and all go on.
// ranks: 2
// cut: middle
// refuses: not all ranks come to it
#include "state.h"

int main(void) {
    start();
    int *own, unit;
    volatile int *seen;
    MPI_Aint bytes;
    MPI_Win window;
    MPI_Win_allocate_shared(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &own, &window);
    MPI_Win_shared_query(window, 0, &bytes, &unit, &own);
    seen = own;
    if (rank == 0) *seen = 0;
    for (int i = 0; i < 2; i++) beat();
    if (rank == 0) {
        while (!*seen) {}
        MPI_Send(&size, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
        MPI_Recv(&unit, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        *seen = 1;
        MPI_Send(&size, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
        MPI_Recv(&unit, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    CHECK(unit == size);
    MPI_Win_free(&window);
    say("gone on");
    return done("cut_unreached");
}
