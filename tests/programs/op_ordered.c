// An operation of the program's that does not commute: products of matrices, in the order of ranks.
// ranks: 4
#include "state.h"

static void product(void *in, void *io, int *n, MPI_Datatype *type) {
    (void)type;
    int *a = in, *b = io;
    for (int i = 0; i < *n; i++, a += 4, b += 4) {
        int c[4] = {a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3], a[2] * b[0] + a[3] * b[2], a[2] * b[1] + a[3] * b[3]};
        memcpy(b, c, sizeof c);
    }
}

int main(void) {
    start();
    int own[4] = {1, rank + 1, rank % 2, 1}, out[4], expected[4] = {1, 1, 0, 1}, flag;
    for (int i = 1; i < size; i++) {
        int next[4] = {1, i + 1, i % 2, 1}, one = 1;
        product(expected, next, &one, NULL);
        memcpy(expected, next, sizeof next);
    }
    MPI_Datatype matrix;
    MPI_Op op;
    MPI_Type_contiguous(4, MPI_INT, &matrix);
    MPI_Type_commit(&matrix);
    MPI_Op_create(product, 0, &op);
    for (int i = 0; i < 5; i++) {
        beat();
        MPI_Allreduce(own, out, 1, matrix, op, MPI_COMM_WORLD);
        CHECK(!memcmp(out, expected, sizeof out));
    }
    MPI_Op_commutative(op, &flag);
    CHECK(!flag);
    MPI_Op_free(&op);
    MPI_Type_free(&matrix);
    beat();
    say("%d %d %d %d", out[0], out[1], out[2], out[3]);
    return done("op_ordered");
}
