// Matched messages by Improbe, received by Imrecv while others communicate; a large one among them; and no process.
#include "state.h"
#include <sched.h>

enum { N = 60000 };
static int out[N], in[N];

int main(void) {
    start();
    int flag, small = -1;
    MPI_Message large, little, none;
    MPI_Request send, receives[3];
    MPI_Status status;
    fill(out, N, rank);
    MPI_Isend(out, N, MPI_INT, after, 1, MPI_COMM_WORLD, &send);
    MPI_Send(&rank, 1, MPI_INT, after, 2, MPI_COMM_WORLD);
    meet();
    for (flag = 0; !flag; sched_yield()) MPI_Improbe(before, 1, MPI_COMM_WORLD, &flag, &large, &status);
    beat();
    for (flag = 0; !flag; sched_yield()) MPI_Improbe(MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &flag, &little, &status);
    CHECK(status.MPI_SOURCE == before);
    MPI_Improbe(MPI_PROC_NULL, 2, MPI_COMM_WORLD, &flag, &none, &status);
    CHECK(flag && none == MPI_MESSAGE_NO_PROC);
    for (int i = 0; i < 2; i++) beat();
    MPI_Imrecv(&small, 1, MPI_INT, &little, &receives[0]);
    MPI_Imrecv(in, N, MPI_INT, &large, &receives[1]);
    MPI_Imrecv(&flag, 1, MPI_INT, &none, &receives[2]);
    for (int i = 0; i < 2; i++) beat();
    MPI_Waitall(3, receives, MPI_STATUSES_IGNORE);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    CHECK(small == before && filled(in, N, before));
    // What finds nothing leaves the status as it is.
    status.MPI_SOURCE = status.MPI_TAG = 77;
    MPI_Improbe(before, 3, MPI_COMM_WORLD, &flag, &little, &status);
    CHECK(!flag && status.MPI_SOURCE == 77 && status.MPI_TAG == 77);
    MPI_Iprobe(before, 3, MPI_COMM_WORLD, &flag, &status);
    CHECK(!flag && status.MPI_SOURCE == 77 && status.MPI_TAG == 77);
    beat();
    say("held %d", small);
    return done("improbe");
}
