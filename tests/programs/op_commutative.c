// An operation of the program's that commutes, used between cuts by every reduction.
#include "state.h"

static void most(void *in, void *io, int *n, MPI_Datatype *type) {
    (void)type;
    for (int i = 0; i < *n; i++)
        if (((int *)in)[i] > ((int *)io)[i]) ((int *)io)[i] = ((int *)in)[i];
}

int main(void) {
    start();
    int own[2] = {rank, -rank}, out[2], flag, scan[2];
    MPI_Op op;
    MPI_Op_create(most, 1, &op);
    for (int i = 0; i < 3; i++) {
        beat();
        MPI_Allreduce(own, out, 2, MPI_INT, op, MPI_COMM_WORLD);
        CHECK(out[0] == size - 1 && out[1] == 0);
        MPI_Scan(own, scan, 2, MPI_INT, op, MPI_COMM_WORLD);
        CHECK(scan[0] == rank && scan[1] == 0);
        out[0] = out[1] = -9;
        MPI_Reduce(own, out, 2, MPI_INT, op, 1, MPI_COMM_WORLD);
        CHECK(out[0] == (rank == 1 ? size - 1 : -9));
    }
    MPI_Op_commutative(op, &flag);
    CHECK(flag);
    MPI_Op_free(&op);
    CHECK(op == MPI_OP_NULL);
    beat();
    say("most %d", scan[0]);
    return done("op_commutative");
}
