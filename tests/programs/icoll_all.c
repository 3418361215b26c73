// The nonblocking collectives that no other program has, all started one after the other and then completed.
#include "state.h"

enum { MOST = 8, KINDS = 13 };

int main(void) {
    start();
    CHECK(size <= MOST);
    int own, counts[MOST], places[MOST], to[MOST], ones[MOST], all[KINDS][MOST];
    int last = size - 1, sum = size * (size + 1) / 2;
    int line[1] = {size}, round[1] = {1};
    MPI_Comm ring_of;
    MPI_Request requests[KINDS];
    MPI_Cart_create(MPI_COMM_WORLD, 1, line, round, 0, &ring_of);
    for (int i = 0; i < size; i++) counts[i] = 1, places[i] = last - i, ones[i] = rank + 1;
    for (int turn = 0; turn < 2; turn++) {
        MPI_Request *next = requests;
        memset(all, -1, sizeof all);
        own = rank + 1;
        for (int i = 0; i < size; i++) to[i] = 10 * rank + i;
        MPI_Igather(&own, 1, MPI_INT, all[0], 1, MPI_INT, turn, MPI_COMM_WORLD, next++);
        MPI_Igatherv(&own, 1, MPI_INT, all[1], counts, places, MPI_INT, turn, MPI_COMM_WORLD, next++);
        MPI_Iscatter(to, 1, MPI_INT, all[2], 1, MPI_INT, turn, MPI_COMM_WORLD, next++);
        MPI_Iscatterv(to, counts, places, MPI_INT, all[3], 1, MPI_INT, turn, MPI_COMM_WORLD, next++);
        MPI_Iallgatherv(&own, 1, MPI_INT, all[4], counts, places, MPI_INT, MPI_COMM_WORLD, next++);
        MPI_Ialltoallv(to, counts, places, MPI_INT, all[5], counts, places, MPI_INT, MPI_COMM_WORLD, next++);
        MPI_Ireduce(&own, all[6], 1, MPI_INT, MPI_SUM, turn, MPI_COMM_WORLD, next++);
        MPI_Ireduce_scatter(to, all[7], counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD, next++);
        MPI_Ireduce_scatter_block(ones, all[8], 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, next++);
        MPI_Iscan(&own, all[9], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, next++);
        MPI_Iexscan(&own, all[10], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, next++);
        MPI_Ineighbor_allgather(&own, 1, MPI_INT, all[11], 1, MPI_INT, ring_of, next++);
        MPI_Ineighbor_alltoall(to, 1, MPI_INT, all[12], 1, MPI_INT, ring_of, next++);
        MPI_Waitall(KINDS, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < size; i++) {
            CHECK(rank != turn || (all[0][i] == i + 1 && all[1][i] == size - i));
            CHECK(all[4][i] == size - i && all[5][i] == 10 * (last - i) + last - rank);
        }
        CHECK(all[2][0] == 10 * turn + rank && all[3][0] == 10 * turn + last - rank);
        CHECK(rank != turn || all[6][0] == sum);
        CHECK(all[7][0] == 10 * (sum - size) + size * rank && all[8][0] == size);
        CHECK(all[9][0] == own * (own + 1) / 2 && (rank == 0 || all[10][0] == rank * own / 2));
        CHECK(all[11][0] == before + 1 && all[11][1] == after + 1);
        CHECK(all[12][0] == 10 * before + 1 && all[12][1] == 10 * after);
        beat();
    }
    MPI_Comm_free(&ring_of);
    beat();
    say("sum %d", all[7][0]);
    return done("icoll_all");
}
