// Threads wait within MPI, for a send to be taken and for a message to come, while cuts are refused because of them.
// refuses: is inside the MPI library
// refuses: does not stop
#include "state.h"
#include <pthread.h>

enum { MANY = 1 << 20 };
static int out[MANY], in[MANY];
static MPI_Request request;

static void *wait_for(void *unused) {
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(request == MPI_REQUEST_NULL);
    return unused;
}

static void *look_for(void *unused) {
    MPI_Status status;
    MPI_Probe(before, 71, MPI_COMM_WORLD, &status);
    CHECK(status.MPI_SOURCE == before && status.MPI_TAG == 71);
    return unused;
}

int main(void) {
    start_threads();
    pthread_t waits, looks;
    int number = 7 * rank;
    fill(out, MANY, rank);
    MPI_Isend(out, MANY, MPI_INT, after, 70, MPI_COMM_WORLD, &request);
    CHECK(!pthread_create(&waits, NULL, wait_for, NULL) && !pthread_create(&looks, NULL, look_for, NULL));
    beat();
    MPI_Send(&number, 1, MPI_INT, after, 71, MPI_COMM_WORLD);
    CHECK(!pthread_join(looks, NULL));
    MPI_Recv(&number, 1, MPI_INT, before, 71, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(number == 7 * before);
    MPI_Recv(in, MANY, MPI_INT, before, 70, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(!pthread_join(waits, NULL) && filled(in, MANY, before));
    beat();
    say("%d", number);
    return done("thread_refused");
}
