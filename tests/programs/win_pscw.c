// A window whose epochs are between some ranks only: post, start, complete, wait.
// refuses: epoch, window
#include "state.h"

int main(void) {
    start();
    int memory[4] = {-1, -1, -1, -1};
    MPI_Win win;
    MPI_Group world, from, to;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &before, &from);
    MPI_Group_incl(world, 1, &after, &to);
    MPI_Win_create(memory, sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    for (int i = 0; i < 4; i++) {
        int out = 10 * i + rank;
        MPI_Win_post(from, 0, win);
        MPI_Win_start(to, 0, win);
        MPI_Put(&out, 1, MPI_INT, after, 4 * i, 1, MPI_INT, win);
        MPI_Win_complete(win);
        if (i % 2) beat();
        MPI_Win_wait(win);
        CHECK(memory[i] == 10 * i + before);
        beat();
    }
    MPI_Win_free(&win);
    MPI_Group_free(&from), MPI_Group_free(&to), MPI_Group_free(&world);
    beat();
    say("last %d", memory[3]);
    return done("win_pscw");
}
