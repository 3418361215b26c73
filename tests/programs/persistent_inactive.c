// Persistent requests that are made and not started, and started again after they were complete.
#include "state.h"

int main(void) {
    start();
    int in[4], out[4], flag;
    MPI_Request receive, send;
    MPI_Status status;
    MPI_Recv_init(in, 4, MPI_INT, before, 5, MPI_COMM_WORLD, &receive);
    MPI_Send_init(out, 4, MPI_INT, after, 5, MPI_COMM_WORLD, &send);
    for (int i = 0; i < 4; i++) {
        beat();
        MPI_Test(&receive, &flag, &status);
        CHECK(flag && status.MPI_SOURCE == MPI_ANY_SOURCE && receive != MPI_REQUEST_NULL);
        fill(out, 4, rank + i);
        MPI_Start(&receive);
        MPI_Start(&send);
        MPI_Wait(&send, MPI_STATUS_IGNORE);
        MPI_Wait(&receive, &status);
        CHECK(status.MPI_SOURCE == before && filled(in, 4, before + i));
        meet();
    }
    MPI_Request_free(&receive);
    MPI_Request_free(&send);
    CHECK(send == MPI_REQUEST_NULL);
    beat();
    say("last %d", in[3]);
    return done("persistent_inactive");
}
