// What not every MPI has: where the one of a restart lacks it, the error handler that the call names is called.
// mpi: 4
#include "state.h"

static int called;

static void handler(MPI_Comm *comm, int *code, ...) {
    called += *comm == MPI_COMM_SELF && *code != MPI_SUCCESS;
}

int main(void) {
    start();
    MPI_Group group;
    MPI_Comm made;
    MPI_Errhandler own;
    MPI_Comm_create_errhandler(handler, &own);
    MPI_Comm_group(MPI_COMM_WORLD, &group);
    beat();
    MPI_Errhandler handlers[2] = {MPI_ERRORS_RETURN, own};
    for (int i = 0; i < 2; i++) {
        int class, code = MPI_Comm_create_from_group(group, "lacking", MPI_INFO_NULL, handlers[i], &made);
        MPI_Error_class(code, &class);
        if (code == MPI_SUCCESS) {
            exchange(made, i);
            MPI_Comm_free(&made);
            say("made");
        } else {
            say("%s, %d called", class == MPI_ERR_UNSUPPORTED_OPERATION ? "lacking" : "failed", called);
        }
        beat();
    }
    MPI_Group_free(&group);
    MPI_Errhandler_free(&own);
    return done("lacking");
}
