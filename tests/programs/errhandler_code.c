// Error handlers that change the code they are told: with MPICH the call returns what they make of it, with Open MPI not.
#include "state.h"

static void forgive(MPI_Comm *comm, int *code, ...) {
    (void)comm;
    *code = MPI_SUCCESS;
}

static void rename_it(MPI_Comm *comm, int *code, ...) {
    (void)comm;
    *code = MPI_ERR_TAG;
}

static int class_of(MPI_Comm comm) {
    int number = 0, class = -1;
    MPI_Error_class(MPI_Send(&number, 1, MPI_INT, size + 5, 1, comm), &class);
    return class;
}

int main(void) {
    MPI_Errhandler handler;
    MPI_Comm comms[3];
    start();
#ifdef MPICH
    const int wanted[] = {MPI_SUCCESS, MPI_ERR_TAG, MPI_ERR_RANK};
#else
    const int wanted[] = {MPI_ERR_RANK, MPI_ERR_RANK, MPI_ERR_RANK};
#endif
    for (int i = 0; i < 3; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
        handler = MPI_ERRORS_RETURN;
        if (i < 2) MPI_Comm_create_errhandler(i ? rename_it : forgive, &handler);
        MPI_Comm_set_errhandler(comms[i], handler);
        if (i < 2) MPI_Errhandler_free(&handler);
    }
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 3; i++) CHECK(class_of(comms[i]) == wanted[i]);
        beat();
        for (int i = 2; i >= 0; i--) CHECK(class_of(comms[i]) == wanted[i]);
    }
    for (int i = 0; i < 3; i++) MPI_Comm_free(&comms[i]);
    say("as told");
    return done("errhandler_code");
}
