// A graph topology with its neighbours.
#include "state.h"

int main(void) {
    start();
    MPI_Comm star;
    int index[8], edges[16], n, near[8], nodes, links, kind;
    for (int i = 0; i < size; i++) {
        index[i] = size - 1 + i;
        if (i) edges[i - 1] = i, edges[size - 2 + i] = 0;
    }
    MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &star);
    for (int i = 0; i < 4; i++) {
        ring(star);
        MPI_Graph_neighbors_count(star, rank, &n);
        MPI_Graph_neighbors(star, rank, n, near);
        CHECK(n == (rank ? 1 : size - 1) && near[0] == (rank ? 0 : 1));
    }
    MPI_Graphdims_get(star, &nodes, &links);
    MPI_Topo_test(star, &kind);
    CHECK(nodes == size && links == 2 * (size - 1) && kind == MPI_GRAPH);
    for (int i = 0; i < 3; i++) beat();
    MPI_Graph_get(star, size, links, index, near);
    CHECK(index[0] == size - 1 && near[0] == 1 && near[size - 1] == 0);
    MPI_Comm_free(&star);
    beat();
    say("%d neighbours", n);
    return done("graph");
}
