// A duplicate that one rank uses already while another has not completed its request.
#include "state.h"

int main(void) {
    start();
    int in = -1;
    MPI_Comm comm;
    MPI_Request request, sent;
    for (int i = 0; i < 3; i++) {
        MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request);
        if (rank == 0) {
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            MPI_Issend(&i, 1, MPI_INT, 1, 5, comm, &sent);
            MPI_Wait(&sent, MPI_STATUS_IGNORE);
        } else {
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            if (rank == 1) MPI_Recv(&in, 1, MPI_INT, 0, 5, comm, MPI_STATUS_IGNORE);
        }
        CHECK(rank != 1 || in == i);
        MPI_Comm_free(&comm);
        beat();
    }
    say("last %d", in);
    return done("comm_idup_used");
}
