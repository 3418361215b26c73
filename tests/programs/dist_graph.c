// Distributed graphs, each rank telling its own edges, or others'; collectives among the neighbours.
#include "state.h"

int main(void) {
    start();
    MPI_Comm own, others;
    int n, m, weighted, one = 3, from = -1, to = -1, w1 = -1, w2 = -1, in = -1;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &before, &one, 1, &after, &one, MPI_INFO_NULL, 0, &own);
    int degree = 1, target = before, weight = 1;
    MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, &degree, &target, &weight, MPI_INFO_NULL, 0, &others);
    for (int i = 0; i < 4; i++) {
        beat();
        MPI_Neighbor_allgather(&rank, 1, MPI_INT, &in, 1, MPI_INT, i % 2 ? others : own);
        CHECK(in == (i % 2 ? after : before));
    }
    MPI_Dist_graph_neighbors_count(own, &n, &m, &weighted);
    MPI_Dist_graph_neighbors(own, 1, &from, &w1, 1, &to, &w2);
    CHECK(n == 1 && m == 1 && weighted && from == before && to == after && w1 == 3 && w2 == 3);
    beat();
    MPI_Dist_graph_neighbors_count(others, &n, &m, &weighted);
    CHECK(n == 1 && m == 1 && weighted);
    MPI_Topo_test(others, &n);
    CHECK(n == MPI_DIST_GRAPH);
    MPI_Comm_free(&own);
    beat();
    MPI_Comm_free(&others);
    beat();
    // Rank 0 tells all edges, from each rank to both of its neighbours.
    int sources[8], degrees[8], ends[16], in_from[4], out_to[4];
    for (int i = 0; i < size; i++) sources[i] = i, degrees[i] = 2, ends[2 * i] = (i + 1) % size, ends[2 * i + 1] = (i + size - 1) % size;
    MPI_Dist_graph_create(MPI_COMM_WORLD, rank ? 0 : size, sources, degrees, ends, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &others);
    beat();
    MPI_Dist_graph_neighbors(others, 2, in_from, MPI_UNWEIGHTED, 2, out_to, MPI_UNWEIGHTED);
    CHECK(in_from[0] + in_from[1] == before + after && out_to[0] + out_to[1] == before + after);
    MPI_Dist_graph_neighbors_count(others, &n, &m, &weighted);
    CHECK(n == 2 && m == 2 && !weighted);
    // Their order stays as it is, and is that of the blocks, which have lengths of their own.
    for (int i = 0; i < 3; i++) {
        int sent[8], got[8], out_n[2], in_n[2], out_at[2] = {0, 4}, in_at[2] = {0, 4}, from_now[2], to_now[2];
        for (int k = 0; k < 2; k++) {
            out_n[k] = 1 + (rank + 2 * out_to[k]) % 3, in_n[k] = 1 + (in_from[k] + 2 * rank) % 3;
            fill(sent + 4 * k, out_n[k], 10 * rank + out_to[k]);
        }
        MPI_Neighbor_alltoallv(sent, out_n, out_at, MPI_INT, got, in_n, in_at, MPI_INT, others);
        for (int k = 0; k < 2; k++) CHECK(filled(got + 4 * k, in_n[k], 10 * in_from[k] + rank));
        beat();
        MPI_Dist_graph_neighbors(others, 2, from_now, MPI_UNWEIGHTED, 2, to_now, MPI_UNWEIGHTED);
        CHECK(!memcmp(from_now, in_from, sizeof from_now) && !memcmp(to_now, out_to, sizeof to_now));
    }
    MPI_Comm_free(&others);
    // Ranks that may be ordered anew stay where they are, as the images do.
    int heavy = (rank + size / 2) % size, weights = 100, place = -1;
    MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, &degree, &heavy, &weights, MPI_INFO_NULL, 1, &others);
    beat();
    MPI_Comm_rank(others, &place);
    CHECK(place == rank);
    beat();
    MPI_Comm_free(&others);
    say("from %d to %d", from, to);
    return done("dist_graph");
}
