// Nonblocking collectives that are started and completed between two events.
#include "state.h"

int main(void) {
    start();
    int sum, all[8], value;
    MPI_Request requests[3];
    for (int i = 0; i < 6; i++) {
        value = rank == i % size ? 50 + i : -1;
        MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
        MPI_Iallgather(&rank, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD, &requests[1]);
        MPI_Ibcast(&value, 1, MPI_INT, i % size, MPI_COMM_WORLD, &requests[2]);
        MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
        CHECK(sum == size * (size - 1) / 2 && all[after] == after && value == 50 + i);
        beat();
    }
    say("sum %d", sum);
    return done("icoll_completed");
}
