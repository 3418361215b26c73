// Error handlers of the program's, on communicators old and new, called after a while.
#include "state.h"

static int seen, class_seen;
static MPI_Comm comm_seen;

static void handle(MPI_Comm *comm, int *code, ...) {
    seen++;
    comm_seen = *comm;
    MPI_Error_class(*code, &class_seen);
}

int main(void) {
    start();
    MPI_Errhandler handler, got;
    MPI_Comm copy;
    int in;
    MPI_Comm_create_errhandler(handle, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Errhandler_free(&handler);
    CHECK(handler == MPI_ERRHANDLER_NULL);
    for (int i = 0; i < 3; i++) {
        beat();
        MPI_Comm where = i % 2 ? copy : MPI_COMM_WORLD;
        CHECK(MPI_Send(&in, 1, MPI_INT, size + 5, 0, where) != MPI_SUCCESS);
        CHECK(seen == i + 1 && class_seen == MPI_ERR_RANK && comm_seen == where);
    }
    MPI_Comm_get_errhandler(copy, &got);
    CHECK(got != MPI_ERRHANDLER_NULL);
    MPI_Errhandler_free(&got);
    MPI_Comm_call_errhandler(copy, MPI_ERR_OTHER);
    CHECK(seen == 4 && class_seen == MPI_ERR_OTHER && comm_seen == copy);
    MPI_Comm_free(&copy);
    beat();
    say("%d errors", seen);
    return done("errhandler_own");
}
