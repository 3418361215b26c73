// Generalized requests, pending: their callbacks and their state are the program's.
// cut: middle
// refuses: nonblocking input, output or one-sided communication is under way
#include "state.h"

typedef struct {
    int value, freed;
} State;

static int query(void *state, MPI_Status *status) {
    MPI_Status_set_elements(status, MPI_INT, ((State *)state)->value);
    MPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = 1, status->MPI_TAG = 42;
    return MPI_SUCCESS;
}

static int release(void *state) {
    ((State *)state)->freed++;
    return MPI_SUCCESS;
}

static int cancel(void *state, int complete) { return state && complete ? MPI_SUCCESS : MPI_SUCCESS; }

int main(void) {
    start();
    State states[2] = {{5, 0}, {6, 0}};
    MPI_Request requests[2];
    MPI_Status status;
    int n, flag;
    for (int i = 0; i < 2; i++) MPI_Grequest_start(query, release, cancel, &states[i], &requests[i]);
    for (int i = 0; i < 3; i++) beat();
    MPI_Test(&requests[1], &flag, &status);
    CHECK(!flag);
    for (int i = 0; i < 2; i++) {
        MPI_Grequest_complete(requests[i]);
        beat();
        MPI_Wait(&requests[i], &status);
        MPI_Get_count(&status, MPI_INT, &n);
        CHECK(n == 5 + i && status.MPI_TAG == 42 && states[i].freed == 1);
        beat();
    }
    say("counts up to %d", n);
    return done("grequest");
}
