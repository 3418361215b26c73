// A graph topology with its neighbours, and one with twice as many edges as ranks that is made after the others' cuts.
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
    MPI_Comm both;
    int out[8], ends[16];
    for (int i = 0; i < size; i++) index[i] = 2 * (i + 1), edges[2 * i] = (i + size - 1) % size, edges[2 * i + 1] = (i + 1) % size;
    MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &both);
    MPI_Graph_get(both, size, 2 * size, out, ends);
    for (int i = 0; i < 2 * size; i++) CHECK(out[i / 2] == index[i / 2] && ends[i] == edges[i]);
    MPI_Graph_map(MPI_COMM_WORLD, size, index, edges, &nodes);
    CHECK(nodes >= 0 && nodes < size);
    beat();
    MPI_Comm_free(&both);
    say("%d neighbours", n);
    return done("graph");
}
