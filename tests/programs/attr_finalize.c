// An attribute of MPI_COMM_SELF, whose delete callback is the first thing that MPI_Finalize does.
#include "state.h"

static int drop(MPI_Comm comm, int key, void *value, void *extra) {
    int n, flag;
    (void)key, (void)extra;
    MPI_Comm_size(comm, &n);
    MPI_Finalized(&flag);
    CHECK(n == 1 && !flag);
    printf("[%d] at the end %s\n", rank, (char *)value), fflush(stdout);
    return MPI_SUCCESS;
}

int main(void) {
    start();
    int key;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, drop, &key, NULL);
    for (int i = 0; i < 3; i++) beat();
    MPI_Comm_set_attr(MPI_COMM_SELF, key, "cleaned");
    for (int i = 0; i < 4; i++) beat();
    return done("attr_finalize");
}
