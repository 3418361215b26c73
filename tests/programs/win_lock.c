// A window with locks, which may be held while others communicate, and memory that MPI gave.
// refuses: epoch, window, lock
#include "state.h"

int main(void) {
    start();
    int *memory, got = -1, one = 1;
    MPI_Win win;
    MPI_Win_allocate(4 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
    for (int i = 0; i < 4; i++) memory[i] = 0;
    MPI_Win_unlock(rank, win);
    beat();
    for (int i = 0; i < 3; i++) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        MPI_Fetch_and_op(&one, &got, MPI_INT, 0, 1, MPI_SUM, win);
        MPI_Win_unlock(0, win);
        CHECK(got >= i && got < size * (i + 1));
        meet();
    }
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, after, 0, win);
    MPI_Put(&rank, 1, MPI_INT, after, 2, 1, MPI_INT, win);
    MPI_Win_flush(after, win);
    beat();
    MPI_Win_unlock(after, win);
    meet();
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    CHECK(memory[2] == before && (rank || memory[1] == 3 * size));
    MPI_Win_unlock(rank, win);
    beat();
    MPI_Win_free(&win);
    beat();
    say("from %d", before);
    return done("win_lock");
}
