// Nonblocking collectives pending while others communicate: some ranks started them, others not yet.
// cut: middle
#include "state.h"

int main(void) {
    start();
    int sum = -1, value = rank == 0 ? 77 : -1, to[8], from[8];
    MPI_Request requests[4];
    for (int i = 0; i < size; i++) to[i] = 10 * rank + i;
    if (rank == 0) MPI_Ibcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD, &requests[0]);
    beat();
    if (rank != 0) MPI_Ibcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[1]);
    beat();
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    CHECK(value == 77);
    MPI_Ialltoall(to, 1, MPI_INT, from, 1, MPI_INT, MPI_COMM_WORLD, &requests[2]);
    beat();
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    CHECK(sum == size * (size - 1) / 2);
    MPI_Ibarrier(MPI_COMM_WORLD, &requests[3]);
    beat();
    MPI_Waitall(2, requests + 2, MPI_STATUSES_IGNORE);
    for (int i = 0; i < size; i++) CHECK(from[i] == 10 * i + rank);
    for (int i = 0; i < 3; i++) beat();
    say("value %d", value);
    return done("icoll_pending");
}
