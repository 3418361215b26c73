// Persistent requests at work: receives started before, sends after.
#include "state.h"

int main(void) {
    start();
    int in[2][3], out[2][3];
    MPI_Request requests[4];
    for (int i = 0; i < 2; i++) {
        MPI_Recv_init(in[i], 3, MPI_INT, before, i, MPI_COMM_WORLD, &requests[i]);
        MPI_Send_init(out[i], 3, MPI_INT, after, i, MPI_COMM_WORLD, &requests[2 + i]);
    }
    for (int turn = 0; turn < 3; turn++) {
        MPI_Startall(2, requests);
        beat();
        for (int i = 0; i < 2; i++) fill(out[i], 3, 100 * turn + 10 * i + rank);
        MPI_Startall(2, requests + 2);
        beat();
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < 2; i++) CHECK(filled(in[i], 3, 100 * turn + 10 * i + before));
    }
    for (int i = 0; i < 4; i++) MPI_Request_free(&requests[i]);
    say("last %d", in[1][2]);
    return done("persistent_active");
}
