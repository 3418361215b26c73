// Messages of a vector type that nobody has asked for yet, received as a vector and as plain numbers.
#include "state.h"

int main(void) {
    start();
    int out[24], in[24], plain[8];
    MPI_Datatype column;
    MPI_Type_vector(8, 1, 3, MPI_INT, &column);
    MPI_Type_commit(&column);
    fill(out, 24, rank);
    for (int i = 0; i < 2; i++) {
        MPI_Send(out, 1, column, after, i, MPI_COMM_WORLD);
        beat();
        beat();
    }
    memset(in, 0, sizeof in);
    MPI_Recv(plain, 8, MPI_INT, before, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    beat();
    MPI_Recv(in, 1, column, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < 24; i++) CHECK(in[i] == (i % 3 ? 0 : before * 1000003 + i));
    for (int i = 0; i < 8; i++) CHECK(plain[i] == in[3 * i]);
    MPI_Type_free(&column);
    beat();
    say("last %d", plain[7]);
    return done("unexpected_vector");
}
