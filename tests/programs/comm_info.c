// Hints of a communicator that are set one after the other.
#include "state.h"

int main(void) {
    start();
    const char *hints[2] = {"mpi_assert_no_any_tag", "mpi_assert_exact_length"};
    char text[MPI_MAX_INFO_VAL];
    MPI_Comm comm;
    MPI_Info info;
    int found;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int i = 0; i < 2; i++) {
        MPI_Info_create(&info);
        MPI_Info_set(info, hints[i], "true");
        MPI_Comm_set_info(comm, info);
        MPI_Info_free(&info);
        beat();
    }
    ring(comm);
    MPI_Comm_get_info(comm, &info);
    for (int i = 0; i < 2; i++) {
        MPI_Info_get(info, hints[i], sizeof text - 1, text, &found);
        /* Open MPI 4.1 knows neither. */
        CHECK(!found || !strcmp(text, "true"));
    }
    MPI_Info_free(&info);
    MPI_Comm_free(&comm);
    beat();
    return done("comm_info");
}
