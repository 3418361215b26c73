// Several handles of one group and of one error handler, freed one after the other.
#include "state.h"

static void ignore(MPI_Comm *comm, int *code, ...) { (void)comm, (void)code; }

int main(void) {
    start();
    enum { HANDLES = 4 };
    MPI_Group groups[HANDLES], evens;
    MPI_Errhandler own, handlers[HANDLES];
    MPI_Comm copy;
    int result, first[1] = {0};
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_create_errhandler(ignore, &own);
    MPI_Comm_set_errhandler(copy, own);
    for (int i = 0; i < HANDLES; i++) {
        MPI_Comm_group(copy, &groups[i]);
        MPI_Comm_get_errhandler(copy, &handlers[i]);
        beat();
    }
    for (int i = 0; i < HANDLES; i++) {
        MPI_Group_compare(groups[i], groups[HANDLES - 1], &result);
        CHECK(result == MPI_IDENT);
        MPI_Group_incl(groups[i], 1, first, &evens);
        MPI_Group_free(&evens);
        MPI_Group_free(&groups[i]);
        MPI_Errhandler_free(&handlers[i]);
        CHECK(groups[i] == MPI_GROUP_NULL && handlers[i] == MPI_ERRHANDLER_NULL);
        beat();
    }
    MPI_Errhandler_free(&own);
    MPI_Comm_group(copy, &groups[0]);
    MPI_Group_size(groups[0], &result);
    CHECK(result == size);
    MPI_Group_free(&groups[0]);
    // Its handler hears of an error and lets the call return.
    CHECK(MPI_Send(&result, 1, MPI_INT, size, 0, copy) != MPI_SUCCESS);
    ring(copy);
    MPI_Comm_free(&copy);
    meet();
    say("%d ranks", result);
    return done("handles_alike");
}
