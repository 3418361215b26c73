// Resized types: columns that interleave.
#include "state.h"

enum { N = 5 };

int main(void) {
    start();
    int out[N][N], in[N][N];
    MPI_Datatype column, narrow;
    MPI_Aint low, extent, true_low, true_extent;
    MPI_Type_vector(N, 1, N, MPI_INT, &column);
    MPI_Type_create_resized(column, 0, sizeof(int), &narrow);
    MPI_Type_commit(&narrow);
    MPI_Type_free(&column);
    for (int i = 1; i < 5; i++) {
        fill(&out[0][0], N * N, rank + i);
        memset(in, 0, sizeof in);
        MPI_Send(out, i, narrow, after, 0, MPI_COMM_WORLD);
        beat();
        MPI_Recv(in, i, narrow, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int x = 0; x < N; x++)
            for (int y = 0; y < N; y++) CHECK(in[x][y] == (y < i ? (before + i) * 1000003 + x * N + y : 0));
        meet();
    }
    MPI_Type_get_extent(narrow, &low, &extent);
    MPI_Type_get_true_extent(narrow, &true_low, &true_extent);
    CHECK(low == 0 && extent == 4 && true_low == 0 && true_extent == 4 * (N * (N - 1) + 1));
    MPI_Type_free(&narrow);
    say("true extent %d", (int)true_extent);
    return done("type_resized");
}
