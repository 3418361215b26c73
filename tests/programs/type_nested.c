// Types of types of types, with all but the outermost freed.
#include "state.h"

int main(void) {
    start();
    int out[96], in[96], lengths[2] = {1, 2}, places[2] = {0, 1};
    MPI_Datatype a, b, c, d;
    MPI_Type_vector(2, 1, 2, MPI_INT, &a);
    MPI_Type_contiguous(2, a, &b);
    MPI_Type_free(&a);
    beat();
    MPI_Type_indexed(2, lengths, places, b, &c);
    MPI_Type_free(&b);
    beat();
    MPI_Type_create_hvector(2, 1, 128, c, &d);
    MPI_Type_free(&c);
    MPI_Type_commit(&d);
    for (int i = 0; i < 4; i++) {
        fill(out, 96, rank + i);
        memset(in, 0, sizeof in);
        MPI_Send(out, 1, d, after, 0, MPI_COMM_WORLD);
        beat();
        MPI_Recv(in, 1, d, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        int n = 0;
        for (int k = 0; k < 96; k++) {
            if (in[k] != 0) n++;
            CHECK(in[k] == 0 || in[k] == (before + i) * 1000003 + k);
        }
        CHECK(n + (before + i == 0) == 24);
    }
    MPI_Type_free(&d);
    beat();
    say("deep");
    return done("type_nested");
}
