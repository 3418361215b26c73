// Copies of a communicator: messages of one are not seen by the other, whatever is in flight.
#include "state.h"

int main(void) {
    start();
    MPI_Comm copies[3];
    int in, relation;
    for (int i = 0; i < 3; i++) {
        MPI_Comm_dup(i ? copies[i - 1] : MPI_COMM_WORLD, &copies[i]);
        int out = 10 * i + rank;
        MPI_Send(&out, 1, MPI_INT, after, 0, copies[i]);
    }
    for (int i = 2; i >= 0; i--) {
        beat();
        MPI_Recv(&in, 1, MPI_INT, before, 0, copies[i], MPI_STATUS_IGNORE);
        CHECK(in == 10 * i + before);
        ring(copies[i]);
    }
    MPI_Comm_compare(copies[0], copies[2], &relation);
    CHECK(relation == MPI_CONGRUENT);
    MPI_Comm_compare(copies[0], copies[0], &relation);
    CHECK(relation == MPI_IDENT);
    for (int i = 0; i < 3; i++) {
        MPI_Comm_free(&copies[i]);
        CHECK(copies[i] == MPI_COMM_NULL);
        beat();
    }
    say("last %d", in);
    return done("comm_dup");
}
