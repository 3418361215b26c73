// At each cut a thread waits within MPI, in turn by each way to wait, for what comes after the cut: a server, which
// answers the rank before. Main threads wait in it, too: for an answer, or for one that does.
#include "state.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { WAYS = 8, LONG = 40000 };
static MPI_Comm calls, answers;
static atomic_int served, ready;

static int number(int asker, int way) { return 100 * asker + way; }

static void *serve(void *unused) {
    static int text[LONG];
    MPI_Request requests[2];
    CHECK(total(calls, 1) == size);
    ready = 1;
    for (int way = 0; way < WAYS; way++) {
        int got = -1, other = -1, flag, index = -1, count = 0;
        MPI_Status status, statuses[2];
        MPI_Message message;
        switch (way) {
        case 0: MPI_Recv(&got, 1, MPI_INT, before, way, calls, &status); break;
        case 1: MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, calls, &status); break;
        case 2:
            MPI_Probe(before, MPI_ANY_TAG, calls, &status);
            MPI_Recv(&got, 1, MPI_INT, status.MPI_SOURCE, status.MPI_TAG, calls, &status);
            break;
        case 3:
            MPI_Mprobe(before, way, calls, &message, &status);
            MPI_Mrecv(&got, 1, MPI_INT, &message, &status);
            break;
        case 4:
            MPI_Irecv(&got, 1, MPI_INT, before, way, calls, requests);
            MPI_Wait(requests, &status);
            CHECK(requests[0] == MPI_REQUEST_NULL);
            break;
        case 5:
            MPI_Irecv(&other, 1, MPI_INT, before, 1000, calls, requests);
            MPI_Irecv(&got, 1, MPI_INT, before, way, calls, requests + 1);
            MPI_Waitany(2, requests, &index, &status);
            CHECK(index == 1 && requests[1] == MPI_REQUEST_NULL);
            MPI_Cancel(requests);
            MPI_Waitsome(1, requests, &count, &index, statuses);
            MPI_Test_cancelled(statuses, &flag);
            CHECK(count == 1 && index == 0 && flag);
            break;
        case 6:
            MPI_Irecv(&other, 1, MPI_INT, before, way, calls, requests);
            MPI_Irecv(&got, 1, MPI_INT, before, way, calls, requests + 1);
            MPI_Waitall(2, requests, statuses);
            CHECK(other == -7);
            status = statuses[1];
            break;
        default: MPI_Sendrecv(&way, 1, MPI_INT, before, way, &got, 1, MPI_INT, before, way, calls, &status);
        }
        MPI_Get_count(&status, MPI_INT, &count);
        CHECK(got == number(before, way) && status.MPI_SOURCE == before && status.MPI_TAG == way && count == 1);
        fill(text, LONG, got);
        if (way % 2) MPI_Ssend(text, LONG, MPI_INT, before, way, answers);
        else MPI_Send(text, LONG, MPI_INT, before, way, answers);
        served++;
    }
    return unused;
}

static void ask(int way) {
    static int text[LONG];
    int question = number(rank, way), first = -7, readiness;
    MPI_Status status;
    MPI_Recv(NULL, 0, MPI_INT, after, way, MPI_COMM_WORLD, &status);
    if (way == 6) MPI_Send(&first, 1, MPI_INT, after, way, calls);
    if (way == 7) {
        MPI_Recv(&readiness, 1, MPI_INT, after, way, calls, &status);
        CHECK(readiness == way);
    }
    MPI_Send(&question, 1, MPI_INT, after, way, calls);
    MPI_Recv(text, LONG, MPI_INT, after, way, answers, &status);
    CHECK(filled(text, LONG, question) && status.MPI_SOURCE == after && status.MPI_TAG == way);
}

int main(void) {
    pthread_t server;
    start_threads();
    MPI_Comm_dup(MPI_COMM_WORLD, &calls);
    MPI_Comm_dup(MPI_COMM_WORLD, &answers);
    CHECK(!pthread_create(&server, NULL, serve, NULL));
    /* Calls are interrupted once several threads have made some. */
    while (!ready) sched_yield();
    for (int way = 0; way < WAYS; way++) {
        /* One asks after the other; of the one that is asked, the main thread waits for the server. */
        for (int asker = 0; asker < size; asker++) {
            if (asker == rank) ask(way);
            if (asker == before) {
                MPI_Send(NULL, 0, MPI_INT, before, way, MPI_COMM_WORLD);
                while (served == way) sched_yield();
            }
            beat();
        }
    }
    CHECK(!pthread_join(server, NULL));
    MPI_Comm_free(&calls);
    MPI_Comm_free(&answers);
    say("served %d ways", WAYS);
    return done("threads_wait");
}
