// Requests of which several are asked for their status without completing them: pending, complete, inactive and null.
// mpi: 5
#include "state.h"
#include <sched.h>

enum { REQUESTS = 4 };

int main(void) {
    start();
    int in[2] = {-1, -1}, own = rank, flag, index, some, indices[REQUESTS], n;
    MPI_Request requests[REQUESTS], idle[2];
    MPI_Status status, statuses[REQUESTS];
    MPI_Irecv(&in[0], 1, MPI_INT, before, 3, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(&in[1], 1, MPI_INT, before, 4, MPI_COMM_WORLD, &requests[1]);
    MPI_Send_init(&own, 1, MPI_INT, after, 5, MPI_COMM_WORLD, &requests[2]);
    requests[3] = MPI_REQUEST_NULL;
    idle[0] = requests[2], idle[1] = MPI_REQUEST_NULL;
    meet();

    MPI_Request_get_status_any(2, idle, &index, &flag, &status);
    CHECK(flag && index == MPI_UNDEFINED && status.MPI_SOURCE == MPI_ANY_SOURCE && status.MPI_TAG == MPI_ANY_TAG);
    MPI_Request_get_status_some(2, idle, &some, indices, MPI_STATUSES_IGNORE);
    CHECK(some == MPI_UNDEFINED);
    MPI_Request_get_status_all(2, idle, &flag, statuses);
    CHECK(flag && statuses[0].MPI_SOURCE == MPI_ANY_SOURCE && statuses[1].MPI_TAG == MPI_ANY_TAG);
    MPI_Request_get_status_any(REQUESTS, requests, &index, &flag, &status);
    CHECK(!flag);
    MPI_Request_get_status_some(REQUESTS, requests, &some, indices, statuses);
    CHECK(some == 0);
    MPI_Request_get_status_all(REQUESTS, requests, &flag, MPI_STATUSES_IGNORE);
    CHECK(!flag);
    meet();

    MPI_Send(&own, 1, MPI_INT, after, 4, MPI_COMM_WORLD);
    meet();
    for (flag = 0; !flag; sched_yield()) MPI_Request_get_status_any(REQUESTS, requests, &index, &flag, &status);
    CHECK(index == 1 && status.MPI_SOURCE == before && status.MPI_TAG == 4 && in[1] == before);
    beat();
    MPI_Request_get_status_all(REQUESTS, requests, &flag, statuses);
    CHECK(!flag);
    meet();
    MPI_Send(&own, 1, MPI_INT, after, 3, MPI_COMM_WORLD);
    meet();
    for (flag = 0; !flag; sched_yield()) MPI_Request_get_status_all(REQUESTS, requests, &flag, statuses);
    CHECK(statuses[0].MPI_TAG == 3 && statuses[1].MPI_TAG == 4 && statuses[2].MPI_TAG == MPI_ANY_TAG);
    beat();
    MPI_Request_get_status_some(REQUESTS, requests, &some, indices, statuses);
    CHECK(some == 2 && indices[0] == 0 && indices[1] == 1 && statuses[1].MPI_SOURCE == before);
    MPI_Get_count(&statuses[0], MPI_INT, &n);
    CHECK(n == 1 && requests[0] != MPI_REQUEST_NULL);
    beat();
    MPI_Waitall(2, requests, statuses);
    CHECK(statuses[0].MPI_TAG == 3 && statuses[1].MPI_TAG == 4);
    MPI_Request_free(&requests[2]);
    beat();
    say("from %d and %d", in[0], in[1]);
    return done("request_get_statuses");
}
