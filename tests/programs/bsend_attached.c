// A buffer for buffered sends, attached and unused, used, detached and attached again.
#include "state.h"

static char first[8192], second[16384];

int main(void) {
    start();
    int in, n;
    void *back;
    MPI_Buffer_attach(first, sizeof first);
    beat();
    for (int i = 0; i < 4; i++) {
        MPI_Bsend(&i, 1, MPI_INT, after, i, MPI_COMM_WORLD);
        meet();
    }
    for (int i = 0; i < 4; i++) {
        MPI_Recv(&in, 1, MPI_INT, before, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(in == i);
    }
    MPI_Buffer_detach(&back, &n);
    CHECK(back == first && n == sizeof first);
    beat();
    MPI_Buffer_attach(second, sizeof second);
    beat();
    MPI_Bsend(&rank, 1, MPI_INT, after, 9, MPI_COMM_WORLD);
    beat();
    MPI_Recv(&in, 1, MPI_INT, before, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(in == before);
    MPI_Buffer_detach(&back, &n);
    CHECK(back == second && n == sizeof second);
    say("from %d", in);
    return done("bsend_attached");
}
