// A program that has no world: a session, communicators from its groups, one between two groups, and a second session.
// mpi: 4
#include "state.h"

static void all_of(MPI_Session session, const char *tag, MPI_Group *group, MPI_Comm *comm) {
    CHECK(MPI_Group_from_session_pset(session, "mpi://WORLD", group) == MPI_SUCCESS);
    CHECK(MPI_Comm_create_from_group(*group, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, comm) == MPI_SUCCESS);
}

int main(void) {
    MPI_Session session, second;
    MPI_Group group, mine, other;
    MPI_Comm comm, half, between, again;
    int value, got = -1;
    CHECK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session) == MPI_SUCCESS);
    all_of(session, "org.phasecast.all", &group, &comm);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    ring(comm);
    MPI_Group_incl(group, 1, (int[]){0}, rank == 0 ? &mine : &other);
    MPI_Group_range_incl(group, 1, (int[][3]){{1, size - 1, 1}}, rank == 0 ? &other : &mine);
    ring(comm);
    CHECK(MPI_Comm_create_from_group(mine, "org.phasecast.half", MPI_INFO_NULL, MPI_ERRORS_RETURN, &half) == MPI_SUCCESS);
    CHECK(MPI_Intercomm_create_from_groups(mine, 0, other, 0, "org.phasecast.between", MPI_INFO_NULL, MPI_ERRORS_RETURN,
                                           &between) == MPI_SUCCESS);
    ring(comm);
    value = 100 + rank;
    MPI_Allreduce(&value, &got, 1, MPI_INT, MPI_SUM, between);
    CHECK(got == (rank ? 100 : (size - 1) * 100 + size * (size - 1) / 2));
    ring(comm);
    CHECK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &second) == MPI_SUCCESS);
    MPI_Group_free(&group);
    all_of(second, "org.phasecast.second", &group, &again);
    ring(again);
    exchange(comm, 5);
    MPI_Comm_free(&again);
    MPI_Group_free(&group);
    MPI_Session_finalize(&second);
    ring(comm);
    MPI_Comm_free(&between);
    MPI_Comm_free(&half);
    MPI_Group_free(&mine);
    MPI_Group_free(&other);
    ring(comm);
    if (rank == 0) printf("ok sessions_only\n");
    fflush(stdout);
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
    return 0;
}
