// A window of memory that the ranks share: refused, as memory shared with others is in nobody's image.
// refuses: shared, window, epoch
#include "state.h"

int main(void) {
    start();
    for (int i = 0; i < 3; i++) beat();
    int *memory, *theirs, unit;
    MPI_Aint bytes;
    MPI_Win win;
    MPI_Win_allocate_shared(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    *memory = 100 + rank;
    meet();
    MPI_Win_shared_query(win, after, &bytes, &unit, &theirs);
    CHECK(*theirs == 100 + after);
    for (int i = 0; i < 2; i++) beat();
    MPI_Win_free(&win);
    for (int i = 0; i < 3; i++) beat();
    say("saw %d", 100 + after);
    return done("win_shared");
}
