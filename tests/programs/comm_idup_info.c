// A communicator that is duplicated with an info of its own, and used once it is there. (One after the other: Open MPI 5
// stands still at times where two duplicates of the same one are under way.)
// mpi: 4
#include "state.h"

int main(void) {
    start();
    MPI_Info info;
    MPI_Comm made[2];
    MPI_Request requests[2];
    int who;
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_assert_no_any_tag", "true");
    MPI_Comm_idup_with_info(MPI_COMM_WORLD, info, &made[0], &requests[0]);
    beat();
    MPI_Info_free(&info);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Comm_idup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, &made[1], &requests[1]);
    beat();
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    for (int i = 0; i < 2; i++) {
        exchange(made[i], i);
        MPI_Comm_rank(made[i], &who);
        CHECK(who == rank);
        MPI_Comm_free(&made[i]);
        beat();
    }
    say("through");
    return done("comm_idup_info");
}
