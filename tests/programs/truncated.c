// Messages that are longer than the buffers of their receives: errors that return, after which the program goes on.
#include "state.h"

int main(void) {
    start();
    int class, code, in[2] = {-1, -1}, out[2] = {rank, rank + 10};
    MPI_Status status;
    MPI_Request request;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int how = 0; how < 5; how++) {
        beat();
        MPI_Send(out, 2, MPI_INT, after, how, MPI_COMM_WORLD);
        beat();
        if (how == 0) {
            code = MPI_Recv(in, 1, MPI_INT, MPI_ANY_SOURCE, how, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else if (how == 3) {
            MPI_Message message;
            MPI_Mprobe(before, how, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
            beat();
            code = MPI_Mrecv(in, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
        } else if (how == 4) {
            int index = -1;
            MPI_Irecv(in, 1, MPI_INT, before, how, MPI_COMM_WORLD, &request);
            code = MPI_Waitany(1, &request, &index, &status);
        } else {
            MPI_Irecv(in, 1, MPI_INT, before, how, MPI_COMM_WORLD, &request);
            code = how == 1 ? MPI_Wait(&request, &status) : MPI_Waitall(1, &request, &status);
        }
        MPI_Error_class(code, &class);
        if (how == 2) {
            CHECK(class == MPI_ERR_IN_STATUS);
            MPI_Error_class(status.MPI_ERROR, &class);
        }
        CHECK(class == MPI_ERR_TRUNCATE);
        if (how % 3 && request != MPI_REQUEST_NULL)
            MPI_Request_free(&request);
        beat();
    }
    return done("truncated");
}
