// Collectives among the neighbours of a periodic line.
#include "state.h"

int main(void) {
    start();
    MPI_Comm line;
    int periodic = 1, in[2], to[2] = {100 + rank, 200 + rank};
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 1, &line);
    for (int i = 0; i < 4; i++) {
        int out = rank + 10 * i;
        MPI_Neighbor_allgather(&out, 1, MPI_INT, in, 1, MPI_INT, line);
        CHECK(in[0] == before + 10 * i && in[1] == after + 10 * i);
        beat();
        MPI_Neighbor_alltoall(to, 1, MPI_INT, in, 1, MPI_INT, line);
        CHECK(in[0] == 200 + before && in[1] == 100 + after);
        beat();
    }
    MPI_Comm_free(&line);
    beat();
    say("between %d and %d", before, after);
    return done("cart_neighbours");
}
