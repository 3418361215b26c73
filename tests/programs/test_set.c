// Receives asked after by Test, Testany, Testsome and Testall, in vain before they are complete.
#include "state.h"
#include <sched.h>

int main(void) {
    start();
    int in[5], flag, index, n, indices[5];
    MPI_Request requests[5];
    for (int i = 0; i < 5; i++) MPI_Irecv(&in[i], 1, MPI_INT, before, i, MPI_COMM_WORLD, &requests[i]);
    meet();
    MPI_Testall(5, requests, &flag, MPI_STATUSES_IGNORE);
    CHECK(!flag);
    MPI_Testany(5, requests, &index, &flag, MPI_STATUS_IGNORE);
    CHECK(!flag && index == MPI_UNDEFINED);
    MPI_Testsome(5, requests, &n, indices, MPI_STATUSES_IGNORE);
    CHECK(n == 0);
    meet();
    for (int i = 0; i < 5; i++) MPI_Send(&i, 1, MPI_INT, after, i, MPI_COMM_WORLD);
    beat();
    for (flag = 0; !flag; sched_yield()) MPI_Test(&requests[3], &flag, MPI_STATUS_IGNORE);
    CHECK(in[3] == 3 && requests[3] == MPI_REQUEST_NULL);
    meet();
    for (flag = 0; !flag; sched_yield()) MPI_Testany(2, requests, &index, &flag, MPI_STATUS_IGNORE);
    CHECK(index >= 0 && index < 2 && in[index] == index);
    meet();
    for (n = 0; n == 0; sched_yield()) MPI_Testsome(1, requests + 4, &n, indices, MPI_STATUSES_IGNORE);
    CHECK(n == 1 && indices[0] == 0 && in[4] == 4);
    meet();
    for (flag = 0; !flag; sched_yield()) MPI_Testall(5, requests, &flag, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 5; i++) CHECK(in[i] == i && requests[i] == MPI_REQUEST_NULL);
    beat();
    say("all");
    return done("test_set");
}
