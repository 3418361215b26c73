// Buffered sends under way in an attached buffer, small and large.
#include "state.h"

enum { N = 20000 };
static int out[N], in[N];

int main(void) {
    start();
    int bytes = 3 * (N * (int)sizeof(int) + MPI_BSEND_OVERHEAD), size_back;
    void *buffer = malloc((size_t)bytes), *back;
    MPI_Request requests[3];
    MPI_Buffer_attach(buffer, bytes);
    for (int i = 0; i < 3; i++) {
        int n = i == 1 ? N : 10;
        fill(out, n, rank + i);
        MPI_Ibsend(out, n, MPI_INT, after, i, MPI_COMM_WORLD, &requests[i]);
        MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        memset(out, 0, sizeof out);
        beat();
    }
    for (int i = 2; i >= 0; i--) {
        int n = i == 1 ? N : 10;
        MPI_Recv(in, n, MPI_INT, before, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(filled(in, n, before + i));
        meet();
    }
    MPI_Buffer_detach(&back, &size_back);
    CHECK(back == buffer && size_back == bytes);
    free(buffer);
    beat();
    say("buffer back");
    return done("ibsend");
}
