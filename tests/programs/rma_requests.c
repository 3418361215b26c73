// One-sided communication by requests, swaps, replacing and reading only, each within a lock of all ranks.
#include "state.h"

int main(void) {
    start();
    int memory[5] = {0}, out, one = 1, two = 2, got, old, swapped = 0;
    MPI_Win win;
    MPI_Request requests[2];
    MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    for (int i = 0; i < 4; i++) {
        beat();
        MPI_Win_lock_all(0, win);
        out = 10 * i + rank;
        MPI_Rput(&out, 1, MPI_INT, after, 0, 1, MPI_INT, win, &requests[0]);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        MPI_Raccumulate(&one, 1, MPI_INT, after, 1, 1, MPI_INT, MPI_SUM, win, &requests[0]);
        MPI_Rget_accumulate(&two, 1, MPI_INT, &got, 1, MPI_INT, after, 2, 1, MPI_INT, MPI_SUM, win, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        CHECK(got == 2 * i);
        out = swapped + 7;
        MPI_Compare_and_swap(&out, &swapped, &old, MPI_INT, after, 3, win);
        MPI_Win_flush(after, win);
        CHECK(old == swapped);
        swapped = out;
        MPI_Get_accumulate(NULL, 0, MPI_INT, &got, 1, MPI_INT, after, 3, 1, MPI_INT, MPI_NO_OP, win);
        MPI_Win_flush_local(after, win);
        CHECK(got == swapped);
        MPI_Accumulate(&out, 1, MPI_INT, after, 4, 1, MPI_INT, MPI_REPLACE, win);
        MPI_Win_flush_local_all(win);
        out = -1;
        MPI_Win_unlock_all(win);
        beat();
        MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
        CHECK(memory[0] == 10 * i + before && memory[1] == i + 1 && memory[2] == 2 * (i + 1));
        CHECK(memory[3] == 7 * (i + 1) && memory[4] == memory[3]);
        MPI_Win_unlock(rank, win);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    beat();
    MPI_Win_free(&win);
    say("swapped %d", swapped);
    return done("rma_requests");
}
