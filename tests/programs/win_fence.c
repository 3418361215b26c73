// A window between fences: what was put and accumulated, and what the program wrote itself.
#include "state.h"

int main(void) {
    start();
    int memory[8] = {0}, got = -1;
    MPI_Win win;
    MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    for (int i = 0; i < 4; i++) {
        int out = 10 * i + rank;
        MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
        MPI_Put(&out, 1, MPI_INT, after, i, 1, MPI_INT, win);
        MPI_Accumulate(&out, 1, MPI_INT, after, 7, 1, MPI_INT, MPI_SUM, win);
        MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
        CHECK(memory[i] == 10 * i + before);
        beat();
        memory[6] = rank + i;
        beat();
    }
    MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
    MPI_Get(&got, 1, MPI_INT, after, 6, 1, MPI_INT, win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    CHECK(got == after + 3 && memory[7] == 60 + 4 * before);
    MPI_Win_free(&win);
    CHECK(win == MPI_WIN_NULL);
    beat();
    say("sum %d", memory[7]);
    return done("win_fence");
}
