// A type that is freed while a receive and a send of it are pending.
#include "state.h"

int main(void) {
    start();
    int out[30], in[30];
    MPI_Datatype column;
    MPI_Request requests[2], persistent;
    for (int turn = 0; turn < 2; turn++) {
        MPI_Type_vector(10, 1, 3, MPI_INT, &column);
        MPI_Type_commit(&column);
        memset(in, 0, sizeof in);
        fill(out, 30, rank + turn);
        MPI_Irecv(in, 1, column, before, 0, MPI_COMM_WORLD, &requests[0]);
        if (turn) {
            MPI_Send_init(out, 1, column, after, 0, MPI_COMM_WORLD, &persistent);
            MPI_Type_free(&column);
            beat();
            MPI_Start(&persistent);
            MPI_Wait(&persistent, MPI_STATUS_IGNORE);
            MPI_Request_free(&persistent);
            requests[1] = MPI_REQUEST_NULL;
        } else {
            beat();
            MPI_Isend(out, 1, column, after, 0, MPI_COMM_WORLD, &requests[1]);
            MPI_Type_free(&column);
        }
        CHECK(column == MPI_DATATYPE_NULL);
        for (int i = 0; i < 3; i++) beat();
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < 30; i++) CHECK(in[i] == (i % 3 ? 0 : (before + turn) * 1000003 + i));
    }
    say("last %d", in[27]);
    return done("type_freed_in_use");
}
