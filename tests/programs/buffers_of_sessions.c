// Buffers for sends of a session, and one that the library makes by itself.
// mpi: 5
#include "state.h"

enum { N = 1500, BYTES = 4 * (N * sizeof(int) + MPI_BSEND_OVERHEAD) };

static void twice(MPI_Comm comm, int what) {
    static int out[N], in[N];
    for (int k = 0; k < 2; k++) {
        fill(out, N, what + k + 100 * rank);
        MPI_Bsend(out, N, MPI_INT, after, k, comm);
    }
    exchange(comm, what);
    for (int k = 0; k < 2; k++) {
        MPI_Recv(in, N, MPI_INT, before, k, comm, MPI_STATUS_IGNORE);
        CHECK(filled(in, N, what + k + 100 * before));
    }
    exchange(comm, what);
}

int main(void) {
    start();
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    void *buffer = malloc(BYTES), *back = NULL;
    int bytes = 0;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "org.phasecast.buffers", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Group_free(&group);
    MPI_Session_attach_buffer(session, buffer, BYTES);
    beat();
    twice(comm, 3);
    MPI_Session_flush_buffer(session);
    twice(comm, 5);
    MPI_Session_detach_buffer(session, &back, &bytes);
    CHECK(back == buffer && bytes == (int)BYTES);
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
    beat();
    MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0);
    beat();
    twice(MPI_COMM_WORLD, 7);
    MPI_Buffer_flush();
    beat();
    MPI_Buffer_detach(&back, &bytes);
    beat();
    say("through");
    return done("buffers_of_sessions");
}
