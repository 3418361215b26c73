// Operations whose callbacks have state, ask MPI about their type, and use the thread's own variables.
#include "state.h"

static int calls, weight = 3;
static __thread int own_calls = 100;

static void weighted(void *in, void *io, int *n, MPI_Datatype *type) {
    int bytes;
    MPI_Type_size(*type, &bytes);
    CHECK(bytes == (int)sizeof(int) && *type == MPI_INT);
    calls++;
    own_calls++;
    for (int i = 0; i < *n; i++) ((int *)io)[i] += ((int *)in)[i] * (weight - 2);
}

int main(void) {
    start();
    MPI_Op op;
    int out, two[2] = {1, 2}, io[2];
    MPI_Op_create(weighted, 1, &op);
    for (int i = 0; i < 4; i++) {
        MPI_Allreduce(&rank, &out, 1, MPI_INT, op, MPI_COMM_WORLD);
        CHECK(out == size * (size - 1) / 2);
        beat();
        io[0] = 5, io[1] = 6;
        int was = calls;
        MPI_Reduce_local(two, io, 2, MPI_INT, op);
        CHECK(io[0] == 6 && io[1] == 8 && calls == was + 1);
    }
    CHECK(calls >= 4 && own_calls == 100 + calls);
    MPI_Op_free(&op);
    beat();
    say("sum %d", out);
    return done("op_state");
}
