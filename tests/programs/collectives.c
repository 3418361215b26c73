// Every blocking collective, with in-place forms, between beats.
#include "state.h"

int main(void) {
    start();
    int all[16], part[4], counts[8], places[8], bytes[8], own = rank + 1, sum = size * (size + 1) / 2, out = -1;
    MPI_Datatype types[8];
    for (int i = 0; i < size; i++) counts[i] = 1, places[i] = size - 1 - i, bytes[i] = 4 * i, types[i] = MPI_INT;
    beat();
    MPI_Gather(&own, 1, MPI_INT, all, 1, MPI_INT, 1, MPI_COMM_WORLD);
    MPI_Scatter(all, 1, MPI_INT, &out, 1, MPI_INT, 1, MPI_COMM_WORLD);
    CHECK(out == own);
    MPI_Gatherv(&own, 1, MPI_INT, all, counts, places, MPI_INT, 0, MPI_COMM_WORLD);
    CHECK(rank || (all[0] == size && all[size - 1] == 1));
    MPI_Scatterv(all, counts, places, MPI_INT, &out, 1, MPI_INT, 0, MPI_COMM_WORLD);
    CHECK(out == own);
    beat();
    MPI_Allgather(&own, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < size; i++) CHECK(all[i] == i + 1);
    MPI_Allgatherv(&own, 1, MPI_INT, all, counts, places, MPI_INT, MPI_COMM_WORLD);
    CHECK(all[0] == size && all[size - 1] == 1);
    beat();
    all[places[rank]] = own * 2;
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, counts, places, MPI_INT, MPI_COMM_WORLD);
    CHECK(all[0] == 2 * size);
    out = own;
    MPI_Allreduce(MPI_IN_PLACE, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(out == sum);
    beat();
    for (int i = 0; i < size; i++) all[i] = own;
    MPI_Reduce_scatter(all, part, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(part[0] == sum);
    MPI_Reduce_scatter_block(all, part, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    CHECK(part[0] == size);
    MPI_Alltoall(MPI_IN_PLACE, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
    CHECK(all[after] == after + 1);
    beat();
    out = 0;
    MPI_Exscan(&own, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(rank == 0 || out == rank * (rank + 1) / 2);
    MPI_Scan(&own, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(out == own * (own + 1) / 2);
    beat();
    for (int i = 0; i < size; i++) all[places[i]] = 10 * rank + i;
    MPI_Alltoallv(all, counts, places, MPI_INT, all + 8, counts, places, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < size; i++) CHECK(all[8 + places[i]] == 10 * i + rank);
    MPI_Alltoallw(all + 8, counts, bytes, types, all, counts, bytes, types, MPI_COMM_WORLD);
    for (int i = 0; i < size; i++) CHECK(all[i] == 10 * places[rank] + i);
    beat();
    MPI_Reduce(rank == 2 ? MPI_IN_PLACE : &own, rank == 2 ? &own : NULL, 1, MPI_INT, MPI_SUM, 2, MPI_COMM_WORLD);
    CHECK(own == (rank == 2 ? sum : rank + 1));
    MPI_Bcast(&own, 1, MPI_INT, 2, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(own == sum);
    say("sum %d", sum);
    return done("collectives");
}
