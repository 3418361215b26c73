// Buffers for sends of one communicator and of a session, attached over cuts and flushed.
// mpi: 5
#include "state.h"

enum { N = 2000, MESSAGES = 4, BYTES = MESSAGES * (N * sizeof(int) + MPI_BSEND_OVERHEAD) };

int main(void) {
    start();
    static int out[N], in[N];
    void *buffer = malloc(BYTES), *back = NULL;
    int bytes = 0;
    MPI_Comm own;
    MPI_Request flush;
    MPI_Comm_dup(MPI_COMM_WORLD, &own);
    CHECK(MPI_Comm_attach_buffer(own, buffer, BYTES) == MPI_SUCCESS);
    beat();
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 2; k++) {
            fill(out, N, 10 * i + k + 100 * rank);
            MPI_Bsend(out, N, MPI_INT, after, k, own);
        }
        beat();
        for (int k = 0; k < 2; k++) {
            MPI_Recv(in, N, MPI_INT, before, k, own, MPI_STATUS_IGNORE);
            CHECK(filled(in, N, 10 * i + k + 100 * before));
        }
        if (i == 1) MPI_Comm_flush_buffer(own);
        MPI_Comm_iflush_buffer(own, &flush);
        beat();
        MPI_Wait(&flush, MPI_STATUS_IGNORE);
    }
    MPI_Comm_detach_buffer(own, &back, &bytes);
    CHECK(back == buffer && bytes == (int)BYTES);
    beat();
    MPI_Comm_free(&own);
    beat();
    say("through");
    return done("buffers_of_comms");
}
