// A nonblocking reduction with an operation of the program's, pending at a cut of a program whose threads may all call MPI.
// cut: middle
#include "state.h"

static void sum(void *in, void *io, int *n, MPI_Datatype *type) {
    int bytes;
    MPI_Type_size(*type, &bytes);
    CHECK(bytes == (int)sizeof(int));
    for (int i = 0; i < *n; i++) ((int *)io)[i] += ((int *)in)[i];
}

int main(void) {
    start_threads();
    MPI_Op op;
    MPI_Request request;
    int out;
    MPI_Op_create(sum, 1, &op);
    for (int i = 0; i < 4; i++) {
        int in = rank + i;
        out = -1;
        MPI_Iallreduce(&in, &out, 1, MPI_INT, op, MPI_COMM_WORLD, &request);
        beat();
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(out == size * (size - 1) / 2 + i * size);
    }
    MPI_Op_free(&op);
    beat();
    say("sum %d", out);
    return done("op_threads");
}
