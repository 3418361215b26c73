// Shared memory that is locked for all its life, as programs do that only load and store: one rank writes into another's
// part, and what is put and got goes to the same memory.
#include "state.h"

int main(void) {
    start();
    enum { N = 1024 };
    int *own, *theirs, unit, got = -1, put;
    MPI_Aint bytes;
    MPI_Win win;
    MPI_Win_allocate_shared(N * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &own, &win);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
    MPI_Win_shared_query(win, after, &bytes, &unit, &theirs);
    memset(own, 0, N * sizeof(int));
    MPI_Win_sync(win);
    meet();
    for (int i = 0; i < 4; i++) {
        theirs[i] = 10 * i + rank;
        MPI_Win_sync(win);
        meet();
        MPI_Win_sync(win);
        CHECK(own[i] == 10 * i + before);
        put = 1000 * i + rank;
        MPI_Put(&put, 1, MPI_INT, after, 100 + i, 1, MPI_INT, win);
        beat();
        MPI_Win_flush(after, win);
        meet();
        MPI_Win_sync(win);
        CHECK(own[100 + i] == 1000 * i + before && theirs[100 + i] == put);
        MPI_Get(&got, 1, MPI_INT, after, i, 1, MPI_INT, win);
        beat();
        MPI_Win_flush_all(win);
        CHECK(got == 10 * i + rank);
        meet();
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    beat();
    say("got %d", got);
    return done("win_shared_rma");
}
