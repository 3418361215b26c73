// An intercommunicator that is split, its groups, and broadcasts from one side to the other.
// ranks: 4
#include "state.h"

int main(void) {
    start();
    MPI_Comm half, inter, pair;
    MPI_Group remote;
    int n, value, side = rank / 2;
    MPI_Comm_split(MPI_COMM_WORLD, side, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, side ? 0 : 2, 1, &inter);
    MPI_Comm_split(inter, rank % 2, 0, &pair);
    for (int i = 0; i < 3; i++) {
        beat();
        value = rank == 0 ? 70 + i : -1;
        MPI_Bcast(&value, 1, MPI_INT, rank == 0 ? MPI_ROOT : side ? 0 : MPI_PROC_NULL, inter);
        CHECK(value == (side || rank == 0 ? 70 + i : -1));
        int in = -1;
        MPI_Sendrecv(&rank, 1, MPI_INT, 0, 3, &in, 1, MPI_INT, 0, 3, pair, MPI_STATUS_IGNORE);
        CHECK(in == (rank + 2) % 4);
    }
    MPI_Comm_remote_group(inter, &remote);
    MPI_Group_size(remote, &n);
    CHECK(n == 2);
    MPI_Group_rank(remote, &n);
    CHECK(n == MPI_UNDEFINED);
    MPI_Group_free(&remote);
    MPI_Comm_free(&half);
    beat();
    MPI_Comm_free(&pair);
    MPI_Comm_free(&inter);
    beat();
    say("value %d", value);
    return done("intercomm_split");
}
