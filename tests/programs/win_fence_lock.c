// A window that is fenced once, and then locked by some ranks only.
#include "state.h"

int main(void) {
    start();
    int memory[16] = {0}, got[16];
    MPI_Win win;
    MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_fence(0, win);
    for (int i = 1; i < 4; i++) {
        int out = 10 * i + rank;
        if (rank) {
            MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
            MPI_Put(&out, 1, MPI_INT, 0, rank, 1, MPI_INT, win);
            MPI_Win_unlock(0, win);
        }
        beat();
        meet();
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        MPI_Get(got, 16, MPI_INT, 0, 0, 16, MPI_INT, win);
        MPI_Win_unlock(0, win);
        for (int j = 1; j < size; j++) CHECK(got[j] == 10 * i + j);
        if (rank == 0) CHECK(got[0] == 0);
        meet();
    }
    MPI_Win_free(&win);
    beat();
    say("last %d", got[size - 1]);
    return done("win_fence_lock");
}
