// A copy of a communicator with an info, and its own info.
#include "state.h"

static int says(MPI_Comm comm, const char *key) {
    MPI_Info info;
    char value[8] = "";
    int flag;
    MPI_Comm_get_info(comm, &info);
    MPI_Info_get(info, key, 7, value, &flag);
    MPI_Info_free(&info);
    return flag && !strcmp(value, "true");
}

int main(void) {
    start();
    MPI_Comm copy, again;
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_assert_no_any_tag", "true");
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &copy);
    MPI_Info_free(&info);
    for (int i = 0; i < 3; i++) ring(copy);
    CHECK(says(copy, "mpi_assert_no_any_tag"));
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_assert_no_any_source", "true");
    MPI_Comm_set_info(copy, info);
    beat();
    CHECK(says(copy, "mpi_assert_no_any_source") && says(copy, "mpi_assert_no_any_tag"));
    MPI_Info_free(&info);
    CHECK(info == MPI_INFO_NULL);
    MPI_Comm_dup(copy, &again);
    for (int i = 0; i < 3; i++) ring(again);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&again);
    beat();
    say("no wildcards");
    return done("comm_dup_info");
}
