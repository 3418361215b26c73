// Receives from no process, pending: their statuses say so, by Wait and by Waitall (MPICH's say only that nothing came).
#include "state.h"

static int nobody(const MPI_Status *status) {
    int n;
    MPI_Get_count(status, MPI_INT, &n);
    CHECK(n == 0);
    return status->MPI_SOURCE == MPI_PROC_NULL && status->MPI_TAG == MPI_ANY_TAG;
}

int main(void) {
    start();
    int in = 5, tells;
    MPI_Request requests[3];
    MPI_Status status, all[2];
    MPI_Irecv(&in, 1, MPI_INT, MPI_PROC_NULL, 4, MPI_COMM_WORLD, &requests[0]);
    MPI_Wait(&requests[0], &status);
    tells = nobody(&status);
    for (int i = 0; i < 3; i++) MPI_Irecv(&in, 1, MPI_INT, MPI_PROC_NULL, i, MPI_COMM_WORLD, &requests[i]);
    for (int i = 0; i < 3; i++) beat();
    MPI_Wait(&requests[0], &status);
    CHECK(nobody(&status) || !tells);
    for (int i = 0; i < 2; i++) beat();
    MPI_Waitall(2, requests + 1, all);
    for (int i = 0; i < 2; i++) CHECK(nobody(&all[i]) || !tells);
    for (int i = 0; i < 3; i++) CHECK(requests[i] == MPI_REQUEST_NULL);
    for (int i = 0; i < 3; i++) beat();
    CHECK(in == 5 && (nobody(&status) || !tells));
    say("in %d", in);
    return done("null_status");
}
