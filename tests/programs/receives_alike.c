// Receives of the same source and tag, posted and started in another order than their handles come in.
#include "state.h"

int main(void) {
    start();
    int in[2], out[2];
    MPI_Request posted[2], lasting[2];
    for (int i = 0; i < 2; i++) MPI_Recv_init(&in[i], 1, MPI_INT, before, 8, MPI_COMM_WORLD, &lasting[i]);
    for (int turn = 0; turn < 5; turn++) {
        MPI_Request *requests = turn < 3 ? posted : lasting;
        for (int i = 0; i < 2; i++) {
            out[i] = 100 * turn + 10 * rank + i;
            in[i] = -1;
            // What is complete gives its number to the next: in each round the other way round.
            if (turn < 3) MPI_Irecv(&in[i], 1, MPI_INT, before, 8, MPI_COMM_WORLD, &requests[i]);
            else MPI_Start(&requests[1 - i]);
        }
        meet();
        for (int i = 0; i < 2; i++) MPI_Send(&out[i], 1, MPI_INT, after, 8, MPI_COMM_WORLD);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < 2; i++) CHECK(in[turn < 3 ? i : 1 - i] == 100 * turn + 10 * before + i);
    }
    for (int i = 0; i < 2; i++) MPI_Request_free(&lasting[i]);
    say("last %d", in[0]);
    return done("receives_alike");
}
