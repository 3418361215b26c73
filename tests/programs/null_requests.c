// Requests that are none: sets with holes, empty statuses, a set that is nothing but holes, and one that is freed.
#include "state.h"

int main(void) {
    start();
    int in = -1, flag, index, n;
    MPI_Request requests[4] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status statuses[4], status;
    MPI_Wait(&requests[0], &status);
    MPI_Get_count(&status, MPI_INT, &n);
    CHECK(status.MPI_SOURCE == MPI_ANY_SOURCE && status.MPI_TAG == MPI_ANY_TAG && n == 0);
    MPI_Irecv(&in, 1, MPI_INT, before, 0, MPI_COMM_WORLD, &requests[2]);
    for (int i = 0; i < 3; i++) beat();
    MPI_Isend(&rank, 1, MPI_INT, after, 0, MPI_COMM_WORLD, &requests[1]);
    for (int i = 0; i < 3; i++) beat();
    MPI_Waitall(4, requests, statuses);
    CHECK(in == before && statuses[2].MPI_SOURCE == before && statuses[3].MPI_SOURCE == MPI_ANY_SOURCE);
    MPI_Testall(4, requests, &flag, statuses);
    CHECK(flag);
    MPI_Testany(4, requests, &index, &flag, &status);
    CHECK(flag && index == MPI_UNDEFINED);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK(MPI_Request_free(&requests[0]) != MPI_SUCCESS);
    for (int i = 0; i < 3; i++) beat();
    say("holes");
    return done("null_requests");
}
