// An intercommunicator: messages between the groups, in flight; collectives; merged at last.
// ranks: 4
#include "state.h"

int main(void) {
    start();
    MPI_Comm half, inter, merged, copy;
    int n, flag, in = -1, side = rank % 2, own;
    MPI_Comm_split(MPI_COMM_WORLD, side, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - side, 33, &inter);
    beat();
    MPI_Comm_test_inter(inter, &flag);
    MPI_Comm_remote_size(inter, &n);
    CHECK(flag && n == 2);
    MPI_Send(&rank, 1, MPI_INT, rank / 2, 0, inter);
    for (int i = 0; i < 3; i++) beat();
    MPI_Recv(&in, 1, MPI_INT, MPI_ANY_SOURCE, 0, inter, MPI_STATUS_IGNORE);
    CHECK(in == (rank ^ 1));
    CHECK(total(inter, rank) == (side ? 2 : 4));
    beat();
    MPI_Comm_dup(inter, &copy);
    MPI_Intercomm_merge(inter, side, &merged);
    MPI_Comm_free(&inter);
    for (int i = 0; i < 2; i++) ring(merged);
    MPI_Comm_rank(merged, &own);
    CHECK(own == 2 * side + rank / 2);
    CHECK(total(copy, 1) == 2);
    MPI_Comm_free(&copy);
    ring(merged);
    MPI_Comm_free(&merged);
    MPI_Comm_free(&half);
    beat();
    say("merged as %d", own);
    return done("intercomm");
}
