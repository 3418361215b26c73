// Puts that are under way until the next fence: no cut can lie within that time.
// cut: middle
// refuses: one-sided communication with a window is under way until the next MPI_Win_fence
#include "state.h"

int main(void) {
    start();
    int memory[4] = {-1};
    MPI_Win win;
    MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    for (int i = 0; i < 2; i++) beat();
    MPI_Win_fence(0, win);
    MPI_Put(&rank, 1, MPI_INT, after, 0, 1, MPI_INT, win);
    for (int i = 0; i < 4; i++) beat();
    MPI_Win_fence(0, win);
    CHECK(memory[0] == before);
    for (int i = 0; i < 3; i++) beat();
    MPI_Win_free(&win);
    say("put %d", memory[0]);
    return done("win_fence_open");
}
