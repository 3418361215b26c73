// Nonblocking exchanges with derived datatypes of each partner, under way while others are started and the stack is written.
#include "state.h"

static int clobber(int depth) {
    volatile int stack[256];
    for (int i = 0; i < 256; i++) stack[i] = -depth;
    return depth > 0 ? clobber(depth - 1) + stack[17] : stack[3];
}

int main(void) {
    start();
    enum { N = 4, TURNS = 3 };
    int out[TURNS][64], in[TURNS][64], counts[8], places[8];
    MPI_Datatype column, types[TURNS][8];
    MPI_Request requests[TURNS];
    MPI_Type_vector(N, 1, 8, MPI_INT, &column);
    MPI_Type_commit(&column);
    for (int i = 0; i < size; i++) counts[i] = 1, places[i] = i * (int)sizeof(int);
    for (int turn = 0; turn < TURNS; turn++) {
        for (int i = 0; i < size; i++) types[turn][i] = column;
        for (int i = 0; i < 64; i++) out[turn][i] = 1000 * turn + 100 * rank + i, in[turn][i] = -1;
        MPI_Ialltoallw(out[turn], counts, places, types[turn], in[turn], counts, places, types[turn], MPI_COMM_WORLD,
                       &requests[turn]);
        CHECK(clobber(20) != 1);
        beat();
    }
    CHECK(clobber(20) != 1);
    MPI_Type_free(&column);
    MPI_Waitall(TURNS, requests, MPI_STATUSES_IGNORE);
    for (int turn = 0; turn < TURNS; turn++)
        for (int i = 0; i < size; i++)
            for (int j = 0; j < N; j++) CHECK(in[turn][8 * j + i] == 1000 * turn + 100 * i + 8 * j + rank);
    meet();
    say("%d", in[1][9]);
    return done("ialltoallw_types");
}
