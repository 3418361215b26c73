// Persistent collectives between neighbours, whose datatypes the program frees while they are needed.
// mpi: 4
#include "state.h"

int main(void) {
    start();
    int periodic = 1, out[2], in[2], gathered[2], counts[2] = {1, 1}, from[4], to[4];
    MPI_Aint places[2] = {0, 2 * sizeof(int)};
    MPI_Comm line;
    MPI_Datatype pair, types[2];
    MPI_Request requests[3];
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &line);
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    types[0] = types[1] = pair;
    MPI_Neighbor_alltoall_init(out, 1, MPI_INT, in, 1, MPI_INT, line, MPI_INFO_NULL, &requests[0]);
    MPI_Neighbor_allgather_init(&out[0], 1, MPI_INT, gathered, 1, MPI_INT, line, MPI_INFO_NULL, &requests[1]);
    beat();
    MPI_Neighbor_alltoallw_init(to, counts, places, types, from, counts, places, types, line, MPI_INFO_NULL, &requests[2]);
    MPI_Type_free(&pair);
    beat();
    for (int i = 0; i < 3; i++) {
        out[0] = 100 * i + rank, out[1] = 200 * i + rank;
        for (int k = 0; k < 4; k++) to[k] = 1000 * i + 10 * rank + k;
        MPI_Startall(3, requests);
        beat();
        MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
        CHECK(in[0] == 200 * i + before && in[1] == 100 * i + after);
        CHECK(gathered[0] == 100 * i + before && gathered[1] == 100 * i + after);
        for (int k = 0; k < 2; k++)
            CHECK(from[k] == 1000 * i + 10 * before + 2 + k && from[2 + k] == 1000 * i + 10 * after + k);
        beat();
    }
    for (int i = 0; i < 3; i++) MPI_Request_free(&requests[i]);
    MPI_Comm_free(&line);
    beat();
    say("through");
    return done("neighbours_persistent");
}
