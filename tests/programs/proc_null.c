// Communication with no process, pending and complete.
#include "state.h"

// MPICH's nonblocking receives say in their status that nothing came, but not from whom.
static void nobody(const MPI_Status *status, int blocking) {
    int n;
    MPI_Get_count(status, MPI_INT, &n);
    CHECK(n == 0 && (!blocking || (status->MPI_SOURCE == MPI_PROC_NULL && status->MPI_TAG == MPI_ANY_TAG)));
}

int main(void) {
    start();
    int in = 4, out = 5, flag;
    MPI_Request receive, send, persistent;
    MPI_Status status;
    MPI_Irecv(&in, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &receive);
    MPI_Isend(&out, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &send);
    MPI_Recv_init(&in, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &persistent);
    MPI_Start(&persistent);
    for (int i = 0; i < 4; i++) beat();
    MPI_Wait(&receive, &status);
    nobody(&status, 0);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    MPI_Wait(&persistent, &status);
    nobody(&status, 0);
    beat();
    MPI_Recv(&in, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status);
    nobody(&status, 1);
    MPI_Send(&out, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
    beat();
    MPI_Iprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &flag, &status);
    CHECK(flag);
    nobody(&status, 1);
    int to = rank + 1 < size ? rank + 1 : MPI_PROC_NULL, from = rank > 0 ? rank - 1 : MPI_PROC_NULL;
    MPI_Sendrecv(&rank, 1, MPI_INT, to, 2, &in, 1, MPI_INT, from, 2, MPI_COMM_WORLD, &status);
    CHECK(in == (rank > 0 ? rank - 1 : 4));
    MPI_Request_free(&persistent);
    for (int i = 0; i < 2; i++) beat();
    say("in %d", in);
    return done("proc_null");
}
