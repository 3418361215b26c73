// An error handler as a library saves it: the program's, freed and still set, is got, another is set for a while, and then it
// is set again.
#include "state.h"

static int seen, class_seen;

static void handle(MPI_Comm *comm, int *code, ...) {
    (void)comm;
    seen++;
    MPI_Error_class(*code, &class_seen);
}

int main(void) {
    start();
    MPI_Errhandler own, old;
    int in;
    MPI_Comm_create_errhandler(handle, &own);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, own);
    MPI_Errhandler_free(&own);
    for (int i = 0; i < 3; i++) {
        beat();
        MPI_Comm_get_errhandler(MPI_COMM_WORLD, &old);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        beat();
        CHECK(MPI_Send(&in, 1, MPI_INT, size + 5, 0, MPI_COMM_WORLD) != MPI_SUCCESS && seen == i);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, old);
        MPI_Errhandler_free(&old);
        CHECK(old == MPI_ERRHANDLER_NULL);
        beat();
        CHECK(MPI_Send(&in, 1, MPI_INT, size + 5, 0, MPI_COMM_WORLD) != MPI_SUCCESS);
        CHECK(seen == i + 1 && class_seen == MPI_ERR_RANK);
    }
    beat();
    say("%d errors", seen);
    return done("errhandler_saved");
}
