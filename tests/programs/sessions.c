// A session beside the world: its group and communicator, held over cuts.
// mpi: 4
#include "state.h"

int main(void) {
    start();
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    int n, size2, rank2;
    CHECK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session) == MPI_SUCCESS);
    beat();
    CHECK(MPI_Session_get_num_psets(session, MPI_INFO_NULL, &n) == MPI_SUCCESS && n >= 2);
    CHECK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group) == MPI_SUCCESS);
    beat();
    MPI_Group_size(group, &size2);
    CHECK(size2 == size);
    CHECK(MPI_Comm_create_from_group(group, "org.phasecast.test", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm) == MPI_SUCCESS);
    MPI_Group_free(&group);
    for (int i = 0; i < 4; i++) {
        exchange(comm, i);
        beat();
    }
    MPI_Comm_rank(comm, &rank2);
    CHECK(rank2 == rank);
    MPI_Comm_free(&comm);
    beat();
    MPI_Session_finalize(&session);
    beat();
    say("through");
    return done("sessions");
}
