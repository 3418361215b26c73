// Receives from any source while several messages of one tag are in flight from each.
// ranks: 4
#include "state.h"

int main(void) {
    start();
    int got[2], next[4] = {0}, sum = 0;
    MPI_Status status;
    for (int i = 0; i < 4; i++) {
        int out[2] = {rank, i};
        if (rank > 0) MPI_Send(out, 2, MPI_INT, 0, 5, MPI_COMM_WORLD);
        meet();
    }
    for (int turn = 0; turn < 6; turn++) {
        for (int i = 0; rank == 0 && i < 2; i++) {
            MPI_Recv(got, 2, MPI_INT, MPI_ANY_SOURCE, i ? MPI_ANY_TAG : 5, MPI_COMM_WORLD, &status);
            CHECK(status.MPI_SOURCE == got[0] && status.MPI_TAG == 5 && got[1] == next[got[0]]++);
            sum += 10 * got[0] + got[1];
        }
        if (turn % 2) meet();
    }
    for (int i = 1; rank == 0 && i < size; i++) CHECK(next[i] == 4);
    meet();
    say("sum %d", sum);
    return done("wildcard_equal_tags");
}
