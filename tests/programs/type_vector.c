// Vectors and vectors by bytes, one within the other: a matrix turned on its side.
#include "state.h"

enum { N = 6 };

int main(void) {
    start();
    int out[N][N], in[N][N];
    MPI_Datatype column, turned;
    MPI_Type_vector(N, 1, N, MPI_INT, &column);
    MPI_Type_create_hvector(N, 1, sizeof(int), column, &turned);
    MPI_Type_commit(&turned);
    for (int i = 0; i < 4; i++) {
        fill(&out[0][0], N * N, rank + i);
        MPI_Send(out, 1, turned, after, 0, MPI_COMM_WORLD);
        beat();
        MPI_Recv(in, N * N, MPI_INT, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int x = 0; x < N; x++)
            for (int y = 0; y < N; y++) CHECK(in[x][y] == (before + i) * 1000003 + y * N + x);
    }
    MPI_Type_free(&column);
    beat();
    MPI_Type_free(&turned);
    say("corner %d", in[0][N - 1]);
    return done("type_vector");
}
