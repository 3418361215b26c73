// A window without memory of its own: pieces are attached, used and detached, and many small ones that MPI gave.
#include "state.h"

int main(void) {
    start();
    enum { SMALL = 200 };
    int piece[4] = {0}, in, *small[SMALL], out[SMALL];
    MPI_Win win;
    MPI_Aint place, theirs, places[SMALL], smalls[SMALL];
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    beat();
    MPI_Win_attach(win, piece, sizeof piece);
    for (int i = 0; i < SMALL; i++) {
        MPI_Alloc_mem(sizeof(int), MPI_INFO_NULL, &small[i]);
        MPI_Win_attach(win, small[i], sizeof(int));
        *small[i] = i;
        MPI_Get_address(small[i], &places[i]);
    }
    MPI_Sendrecv(places, SMALL, MPI_AINT, before, 2, smalls, SMALL, MPI_AINT, after, 2, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    fill(out, SMALL, rank);
    MPI_Get_address(piece, &place);
    for (int i = 0; i < 3; i++) {
        MPI_Sendrecv(&place, 1, MPI_AINT, before, 1, &theirs, 1, MPI_AINT, after, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Win_fence(0, win);
        in = 5 * i + rank;
        MPI_Put(&in, 1, MPI_INT, after, theirs + 4 * i, 1, MPI_INT, win);
        for (int j = i; j < SMALL; j += 3) MPI_Put(&out[j], 1, MPI_INT, after, smalls[j], 1, MPI_INT, win);
        MPI_Win_fence(0, win);
        CHECK(piece[i] == 5 * i + before);
        for (int j = 0; j < SMALL; j++) CHECK(*small[j] == (j % 3 <= i ? before * 1000003 + j : j));
        beat();
    }
    for (int i = 0; i < SMALL; i++) {
        MPI_Win_detach(win, small[i]);
        MPI_Free_mem(small[i]);
    }
    MPI_Win_detach(win, piece);
    beat();
    MPI_Win_free(&win);
    say("last %d", piece[2]);
    return done("win_dynamic");
}
