// Communicators that ranks duplicate at the same time, each in an order of its own, and what is made of them.
// ranks: 4
#include "state.h"

enum { PARTS = 3 };

int main(void) {
    start();
    MPI_Comm parts[PARTS], copies[PARTS], halves[2], last;
    MPI_Request requests[PARTS];
    MPI_Status statuses[PARTS];
    for (int i = 0; i < PARTS; i++) MPI_Comm_dup(MPI_COMM_WORLD, &parts[i]);
    // A handler that copies have from what they are made of, and one that is set only later.
    MPI_Comm_set_errhandler(parts[1], MPI_ERRORS_RETURN);
    for (int i = 0; i < PARTS; i++) MPI_Comm_idup(parts[(i + rank) % PARTS], &copies[(i + rank) % PARTS], &requests[i]);
    MPI_Waitall(PARTS, requests, statuses);
    MPI_Comm_set_errhandler(parts[2], MPI_ERRORS_RETURN);
    for (int i = 0; i < PARTS; i++) ring(copies[i]);
    MPI_Errhandler handlers[PARTS];
    for (int i = 0; i < PARTS; i++) {
        MPI_Comm_get_errhandler(copies[i], &handlers[i]);
        CHECK((handlers[i] == MPI_ERRORS_RETURN) == (i == 1));
    }
    // Of these each rank needs some; one has no part in what all make.
    MPI_Comm_split(copies[0], rank % 2, -rank, &halves[0]);
    MPI_Comm_split(copies[2], rank ? 1 : MPI_UNDEFINED, rank, &halves[1]);
    MPI_Group some;
    MPI_Comm_group(halves[0], &some);
    MPI_Comm_create(copies[1], some, &last);
    MPI_Group_free(&some);
    ring(last);
    int *mine, there = -1;
    MPI_Win window;
    MPI_Win_allocate(8 * sizeof *mine, sizeof *mine, MPI_INFO_NULL, copies[1], &mine, &window);
    *mine = rank;
    MPI_Win_fence(0, window);
    MPI_Get(&there, 1, MPI_INT, after, 0, 1, MPI_INT, window);
    MPI_Win_fence(0, window);
    CHECK(there == after);
    for (int i = 0; i < PARTS; i++) MPI_Comm_free(&parts[i]);
    beat();
    CHECK(total(last, 1) == 2);
    if (rank) CHECK(total(halves[1], 1) == size - 1);
    int order;
    MPI_Comm_rank(halves[0], &order);
    CHECK(order == 1 - rank / 2);
    for (int i = 0; i < PARTS; i++) ring(copies[i]);
    MPI_Win_free(&window);
    say("three at a time");
    return done("comm_idup_orders");
}
