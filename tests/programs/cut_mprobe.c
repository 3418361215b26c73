// Messages are matched one after the other, with events between them for which their sender waits, and received the last one
// first.
// ranks: 2
#include "state.h"
#include <sched.h>

int main(void) {
    start();
    int in[2] = {-1, -1}, flag;
    MPI_Message messages[2];
    beat();
    for (int i = 0; i < 3; i++) {
        if (rank == 0) {
            MPI_Mprobe(1, 1, MPI_COMM_WORLD, &messages[0], MPI_STATUS_IGNORE);
            MPI_Send(&i, 1, MPI_INT, 1, 2, MPI_COMM_WORLD);
            for (flag = 0; !flag; sched_yield())
                MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &messages[1], MPI_STATUS_IGNORE);
            MPI_Send(&i, 1, MPI_INT, 1, 3, MPI_COMM_WORLD);
            for (int j = 1; j >= 0; j--) MPI_Mrecv(&in[j], 1, MPI_INT, &messages[j], MPI_STATUS_IGNORE);
            CHECK(in[0] == i && in[1] == i + 10);
        } else {
            for (int j = 0; j < 2; j++) {
                int out = i + 10 * j;
                MPI_Send(&out, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
                MPI_Recv(&in[j], 1, MPI_INT, 0, 2 + j, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                CHECK(in[j] == i);
            }
        }
    }
    beat();
    say("last %d", in[0]);
    return done("cut_mprobe");
}
