// Sends that are cancelled, with success or without as the library has it: freed then, and waited for.
#include "state.h"

static int cancelled(MPI_Request *request) {
    int flag, is = 0;
    MPI_Status status;
    MPI_Cancel(request);
    MPI_Request_get_status(*request, &flag, &status);
    if (flag) MPI_Test_cancelled(&status, &is);
    return is;
}

int main(void) {
    start();
    for (int i = 0; i < 4; i++) {
        int out = 10 * i + rank, in = -1;
        MPI_Request request;
        MPI_Issend(&out, 1, MPI_INT, rank, i, MPI_COMM_WORLD, &request);
        beat();
        if (!cancelled(&request)) {
            MPI_Recv(&in, 1, MPI_INT, rank, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(in == out);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else if (i % 2) {
            MPI_Request_free(&request);
        } else {
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        beat();
    }
    say("none is left");
    return done("cancel_send");
}
