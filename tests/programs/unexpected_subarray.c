// A block of a matrix sent and not yet asked for, large enough for a rendezvous.
#include "state.h"

enum { N = 200 };
static int out[N][N], in[N][N];

int main(void) {
    start();
    int all[2] = {N, N}, part[2] = {N - 20, N - 30}, from[2] = {5, 7};
    MPI_Datatype block;
    MPI_Request request;
    MPI_Type_create_subarray(2, all, part, from, MPI_ORDER_C, MPI_INT, &block);
    MPI_Type_commit(&block);
    fill(&out[0][0], N * N, rank);
    MPI_Isend(out, 1, block, after, 0, MPI_COMM_WORLD, &request);
    for (int i = 0; i < 4; i++) beat();
    MPI_Recv(in, 1, block, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            int inside = i >= 5 && i < N - 15 && j >= 7 && j < N - 23;
            CHECK(in[i][j] == (inside ? before * 1000003 + i * N + j : 0));
        }
    beat();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Type_free(&block);
    beat();
    say("corner %d", in[5][7]);
    return done("unexpected_subarray");
}
