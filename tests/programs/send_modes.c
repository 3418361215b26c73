// Blocking sends of every mode, with the receive posted before or after.
#include "state.h"

static char buffer[4096];

int main(void) {
    start();
    int in[4];
    MPI_Request receives[4];
    MPI_Buffer_attach(buffer, sizeof buffer);
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < 4; i++) MPI_Irecv(&in[i], 1, MPI_INT, before, i, MPI_COMM_WORLD, &receives[i]);
        MPI_Barrier(MPI_COMM_WORLD);
        int out = 10 * turn + rank;
        MPI_Send(&out, 1, MPI_INT, after, 0, MPI_COMM_WORLD);
        MPI_Ssend(&out, 1, MPI_INT, after, 1, MPI_COMM_WORLD);
        MPI_Rsend(&out, 1, MPI_INT, after, 2, MPI_COMM_WORLD);
        MPI_Bsend(&out, 1, MPI_INT, after, 3, MPI_COMM_WORLD);
        MPI_Waitall(4, receives, MPI_STATUSES_IGNORE);
        for (int i = 0; i < 4; i++) CHECK(in[i] == 10 * turn + before);
    }
    void *back;
    int n;
    MPI_Buffer_detach(&back, &n);
    CHECK(back == buffer && n == sizeof buffer);
    beat();
    say("last %d", in[3]);
    return done("send_modes");
}
