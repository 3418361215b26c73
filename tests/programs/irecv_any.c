// Receives from any source with any tag, posted before anything is sent.
// ranks: 4
#include "state.h"

int main(void) {
    start();
    int in[6][2], out[2], sum = 0;
    MPI_Request requests[6];
    MPI_Status statuses[6];
    if (rank == 0)
        for (int i = 0; i < 6; i++)
            MPI_Irecv(in[i], 2, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[i]);
    for (int i = 0; i < 3; i++) meet();
    for (int i = 0; i < 2; i++) {
        out[0] = rank, out[1] = 100 * rank + i;
        if (rank > 0) MPI_Send(out, 2, MPI_INT, 0, out[1], MPI_COMM_WORLD);
        meet();
        meet();
    }
    if (rank == 0) {
        MPI_Waitall(6, requests, statuses);
        int next[4] = {0};
        for (int i = 0; i < 6; i++) {
            int from = in[i][0];
            CHECK(statuses[i].MPI_SOURCE == from && statuses[i].MPI_TAG == in[i][1]);
            CHECK(in[i][1] == 100 * from + next[from]++);
            sum += in[i][1];
        }
    }
    meet();
    say("sum of tags %d", sum);
    return done("irecv_any");
}
