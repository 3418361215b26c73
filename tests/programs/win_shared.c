// Memory that the ranks of a node share: each writes its part and reads the others', through the pointers that it got
// at the start. Parts one behind the other (with odd sizes) and apart; a part of nothing; attributes.
#include "state.h"

static int flavor(MPI_Win win) {
    int flag, *number;
    MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &number, &flag);
    return flag ? *number : -1;
}

/* What the others have written is seen from here on: no window is locked. */
static void look(void) {
    __sync_synchronize();
    meet();
    __sync_synchronize();
}

int main(void) {
    start();
    enum { N = 3000 };
    int flag, unit, *unit_at;
    MPI_Aint bytes, *bytes_at;
    MPI_Win near, far;
    MPI_Comm node;
    MPI_Info info;
    int *own, *all, *next, *apart, *there, *base;
    beat();
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Info_create(&info);
    MPI_Info_set(info, "alloc_shared_noncontig", "true");
    int n = N + rank, empty = rank == 0;
    MPI_Win_allocate_shared(n * (MPI_Aint)sizeof(int), sizeof(int), MPI_INFO_NULL, node, &own, &near);
    MPI_Win_allocate_shared(empty ? 0 : N * (MPI_Aint)sizeof(int), 8, info, node, &apart, &far);
    MPI_Info_free(&info);
    MPI_Win_shared_query(near, after, &bytes, &unit, &next);
    CHECK(bytes == (N + after) * (MPI_Aint)sizeof(int) && unit == sizeof(int));
    MPI_Win_shared_query(near, 0, &bytes, &unit, &all);
    CHECK(own == all + rank * N + rank * (rank - 1) / 2);
    MPI_Win_shared_query(far, MPI_PROC_NULL, &bytes, &unit, &there);
    // Some libraries round parts up that lie apart.
    CHECK(bytes >= N * (MPI_Aint)sizeof(int) && unit == 8 && (rank != 1 || there == apart));
    MPI_Win_shared_query(far, 0, &bytes, &unit, &base);
    CHECK(bytes == 0 && !base);
    fill(own, n, 100 + rank);
    if (!empty) fill(apart, N, 200 + rank);
    for (int i = 0; i < 3; i++) {
        look();
        CHECK(filled(next, N + after, 100 * (i + 1) + after) && filled(there, N, 201));
        CHECK(*all == 100 * (i + 1) * 1000003);
        CHECK(flavor(near) == MPI_WIN_FLAVOR_SHARED && flavor(far) == MPI_WIN_FLAVOR_SHARED);
        MPI_Win_get_attr(near, MPI_WIN_BASE, &base, &flag);
        CHECK(flag && base == own);
        MPI_Win_get_attr(near, MPI_WIN_SIZE, &bytes_at, &flag);
        CHECK(flag && *bytes_at == n * (MPI_Aint)sizeof(int));
        MPI_Win_get_attr(near, MPI_WIN_DISP_UNIT, &unit_at, &flag);
        CHECK(flag && *unit_at == sizeof(int));
        beat();
        MPI_Win_shared_query(near, after, &bytes, &unit, &base);
        CHECK(base == next && bytes == (N + after) * (MPI_Aint)sizeof(int));
        look();
        fill(own, n, 100 * (i + 2) + rank);
    }
    MPI_Win_free(&far);
    beat();
    look();
    CHECK(filled(next, N + after, 400 + after));
    say("saw %d", next[1] - after * 1000003);
    MPI_Win_free(&near);
    MPI_Comm_free(&node);
    beat();
    return done("win_shared");
}
