// A window with shared locks, of one rank and of all, open while messages go: what was put before a cut is there after it,
// and what is put after it too.
#include "state.h"

int main(void) {
    start();
    int memory[16] = {0}, got = -1, sum = 0, out;
    MPI_Win one, all;
    MPI_Win_create(memory, 8 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &one);
    MPI_Win_create(memory + 8, 8 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &all);
    MPI_Win_lock_all(0, all);
    for (int i = 0; i < 3; i++) {
        MPI_Win_lock(MPI_LOCK_SHARED, after, 0, one);
        out = 10 * i + rank;
        MPI_Put(&out, 1, MPI_INT, after, i, 1, MPI_INT, one);
        MPI_Accumulate(&out, 1, MPI_INT, after, i, 1, MPI_INT, MPI_SUM, all);
        beat();
        MPI_Accumulate(&out, 1, MPI_INT, after, 7, 1, MPI_INT, MPI_SUM, all);
        MPI_Win_unlock(after, one);
        beat();
        MPI_Win_flush_all(all);
        meet();
        MPI_Fetch_and_op(&out, &got, MPI_INT, after, i, MPI_SUM, all);
        MPI_Win_flush(after, all);
        CHECK(got == out);
        meet();
        MPI_Win_sync(all);
        MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, one);
        MPI_Win_sync(one);
        CHECK(memory[i] == 10 * i + before && memory[8 + i] == 2 * memory[i]);
        MPI_Win_unlock(rank, one);
        sum += memory[i];
        CHECK(memory[15] == sum);
        beat();
    }
    MPI_Win_unlock_all(all);
    MPI_Win_free(&one);
    MPI_Win_free(&all);
    beat();
    say("sum %d", sum);
    return done("win_lock");
}
