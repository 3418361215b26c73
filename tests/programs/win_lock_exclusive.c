// A window that a rank has for itself for a while: no cut can lie within that time.
// cut: middle
// refuses: a window is in an epoch that MPI_Win_lock began with MPI_LOCK_EXCLUSIVE
#include "state.h"

int main(void) {
    start();
    int memory[4] = {0}, out, got = -1;
    MPI_Win win;
    MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    for (int i = 0; i < 2; i++) beat();
    if (rank == 0) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
    for (int i = 0; i < 4; i++) {
        out = 10 + i;
        if (rank == 0) MPI_Put(&out, 1, MPI_INT, 1, i, 1, MPI_INT, win), MPI_Win_flush(1, win);
        beat();
    }
    if (rank == 0) MPI_Win_unlock(1, win);
    for (int i = 0; i < 2; i++) beat();
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
    MPI_Get(&got, 1, MPI_INT, 1, 3, 1, MPI_INT, win);
    MPI_Win_unlock(1, win);
    CHECK(got == 13);
    beat();
    MPI_Win_free(&win);
    say("got %d", got);
    return done("win_lock_exclusive");
}
