// Persistent synchronous, buffered and ready sends, active while others communicate.
#include "state.h"

static char buffer[4096];

int main(void) {
    start();
    int in[3], out;
    MPI_Request sends[3], receives[3];
    MPI_Buffer_attach(buffer, sizeof buffer);
    MPI_Ssend_init(&out, 1, MPI_INT, after, 0, MPI_COMM_WORLD, &sends[0]);
    MPI_Bsend_init(&out, 1, MPI_INT, after, 1, MPI_COMM_WORLD, &sends[1]);
    MPI_Rsend_init(&out, 1, MPI_INT, after, 2, MPI_COMM_WORLD, &sends[2]);
    for (int i = 0; i < 3; i++) MPI_Recv_init(&in[i], 1, MPI_INT, before, i, MPI_COMM_WORLD, &receives[i]);
    for (int turn = 0; turn < 3; turn++) {
        out = 100 * turn + rank;
        MPI_Start(&sends[0]);
        MPI_Start(&sends[1]);
        beat();
        MPI_Startall(3, receives);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Start(&sends[2]);
        beat();
        MPI_Waitall(3, receives, MPI_STATUSES_IGNORE);
        MPI_Waitall(3, sends, MPI_STATUSES_IGNORE);
        for (int i = 0; i < 3; i++) CHECK(in[i] == 100 * turn + before);
    }
    for (int i = 0; i < 3; i++) MPI_Request_free(&sends[i]), MPI_Request_free(&receives[i]);
    void *back;
    int n;
    MPI_Buffer_detach(&back, &n);
    say("last %d", in[2]);
    return done("persistent_kinds");
}
