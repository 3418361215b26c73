// Sends and receives in one that go on beside the program: long and short ones, and in place.
// mpi: 4
#include "state.h"

enum { LONG = 100000, KINDS = 3 };

int main(void) {
    start();
    static int out[LONG], in[LONG], place[LONG];
    MPI_Request requests[KINDS];
    for (int i = 0; i < 2; i++) {
        int short_out = 100 * i + rank, short_in = -1;
        fill(out, LONG, 10 * i + rank);
        fill(place, LONG, 100 * i + rank);
        MPI_Isendrecv(out, LONG, MPI_INT, after, 3, in, LONG, MPI_INT, before, 3, MPI_COMM_WORLD, &requests[0]);
        MPI_Isendrecv(&short_out, 1, MPI_INT, after, 4, &short_in, 1, MPI_INT, before, 4, MPI_COMM_WORLD, &requests[1]);
        beat();
        MPI_Isendrecv_replace(place, LONG, MPI_INT, before, 5, after, 5, MPI_COMM_WORLD, &requests[2]);
        beat();
        MPI_Waitall(KINDS, requests, MPI_STATUSES_IGNORE);
        CHECK(filled(in, LONG, 10 * i + before) && filled(place, LONG, 100 * i + after));
        CHECK(short_in == 100 * i + before);
        beat();
    }
    say("through");
    return done("isendrecv");
}
