// A request whose status is asked for without completing it.
#include "state.h"
#include <sched.h>

int main(void) {
    start();
    int in = -1, flag = 0, n;
    MPI_Request request;
    MPI_Status status;
    MPI_Irecv(&in, 1, MPI_INT, before, 3, MPI_COMM_WORLD, &request);
    meet();
    MPI_Request_get_status(request, &flag, &status);
    CHECK(!flag);
    meet();
    MPI_Send(&rank, 1, MPI_INT, after, 3, MPI_COMM_WORLD);
    meet();
    for (; !flag; sched_yield()) MPI_Request_get_status(request, &flag, &status);
    CHECK(status.MPI_TAG == 3 && request != MPI_REQUEST_NULL && in == before);
    for (int i = 0; i < 4; i++) beat();
    MPI_Request_get_status(request, &flag, &status);
    CHECK(flag);
    MPI_Wait(&request, &status);
    MPI_Get_count(&status, MPI_INT, &n);
    CHECK(n == 1 && status.MPI_SOURCE == before);
    beat();
    say("from %d", in);
    return done("request_get_status");
}
