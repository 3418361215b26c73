// Communicators of the ranks that share memory.
#include "state.h"

int main(void) {
    start();
    MPI_Comm node, none;
    int n, own;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, size - rank, MPI_INFO_NULL, &node);
    MPI_Comm_split_type(MPI_COMM_WORLD, rank ? MPI_COMM_TYPE_SHARED : MPI_UNDEFINED, 0, MPI_INFO_NULL, &none);
    for (int i = 0; i < 4; i++) ring(node);
    MPI_Comm_size(node, &n);
    MPI_Comm_rank(node, &own);
    CHECK(n == size && own == size - 1 - rank && total(node, rank) == size * (size - 1) / 2);
    CHECK((none == MPI_COMM_NULL) == (rank == 0));
    if (rank) CHECK(total(none, 1) == size - 1);
    for (int i = 0; i < 2; i++) beat();
    if (rank) MPI_Comm_free(&none);
    MPI_Comm_free(&node);
    beat();
    say("one node of %d", n);
    return done("comm_split_type");
}
