// Epochs between neighbours that are open for a while: no cut can lie within that time.
// cut: middle
// refuses: a window is in an epoch that MPI_Win_start or MPI_Win_post began
#include "state.h"

int main(void) {
    start();
    int memory[4] = {-1};
    MPI_Win win;
    MPI_Group world, from, to;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &before, &from);
    MPI_Group_incl(world, 1, &after, &to);
    MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    for (int i = 0; i < 2; i++) beat();
    MPI_Win_post(from, 0, win);
    MPI_Win_start(to, 0, win);
    MPI_Put(&rank, 1, MPI_INT, after, 0, 1, MPI_INT, win);
    for (int i = 0; i < 4; i++) beat();
    MPI_Win_complete(win);
    MPI_Win_wait(win);
    CHECK(memory[0] == before);
    MPI_Group_free(&world), MPI_Group_free(&from), MPI_Group_free(&to);
    for (int i = 0; i < 2; i++) beat();
    MPI_Win_free(&win);
    say("put %d", memory[0]);
    return done("win_pscw_open");
}
