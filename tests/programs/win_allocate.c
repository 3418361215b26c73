// Windows with memory that the library chooses: each rank has another size and unit; what is put, got, added, replaced and
// asked for with a request lands where it should, and the memory is at its place.
#include "state.h"

#ifndef NAME
#define NAME "win_allocate"
#endif

enum { N = 3000 };

int main(void) {
    start();
    // Displacements are of bytes in the memory of even ranks, of numbers in that of odd ones.
    int own_unit = rank % 2 ? (int)sizeof(long) : 1, flag, *unit;
    long step = after % 2 ? 1 : (long)sizeof(long), *own, put, got, old, one = 1;
    MPI_Aint *bytes, length = (N + 100 * rank) * (MPI_Aint)sizeof(long);
    MPI_Win win;
    MPI_Request request;
    MPI_Win_allocate(length, own_unit, MPI_INFO_NULL, MPI_COMM_WORLD, &own, &win);
    memset(own, 0, (size_t)length);
    long *const first = own;
    MPI_Win_lock_all(0, win);
    meet();
    for (int i = 0; i < 4; i++) {
        MPI_Win_get_attr(win, MPI_WIN_SIZE, &bytes, &flag);
        CHECK(flag && *bytes == length);
        MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &unit, &flag);
        CHECK(flag && *unit == own_unit);
        MPI_Win_get_attr(win, MPI_WIN_BASE, &own, &flag);
        CHECK(flag && own == first);
        put = 1000 * i + rank;
        MPI_Put(&put, 1, MPI_LONG, after, i * step, 1, MPI_LONG, win);
        beat();
        MPI_Accumulate(&one, 1, MPI_LONG, after, (N - 1) * step, 1, MPI_LONG, MPI_SUM, win);
        MPI_Fetch_and_op(&one, &old, MPI_LONG, after, 500 * step, MPI_SUM, win);
        MPI_Win_flush(after, win);
        CHECK(old == i);
        beat();
        MPI_Get_accumulate(&put, 1, MPI_LONG, &old, 1, MPI_LONG, after, (600 + i) * step, 1, MPI_LONG, MPI_REPLACE, win);
        MPI_Win_flush_all(win);
        CHECK(old == 0);
        meet();
        MPI_Win_sync(win);
        CHECK(own[i] == 1000 * i + before && own[N - 1] == i + 1 && own[500] == i + 1 && own[600 + i] == own[i]);
        MPI_Rget(&got, 1, MPI_LONG, after, i * step, 1, MPI_LONG, win, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(got == put);
        beat();
        meet();
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    beat();
    say("got %ld", got);
    return done(NAME);
}
