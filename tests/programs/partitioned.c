// Messages in partitions: inactive at cuts, arrived and not completed, sent and not received.
// mpi: 4
// refuses: a send is under way whose partitions are not all ready
#include "state.h"
#include <sched.h>

enum { PARTS = 4, EACH = 3000, ALL = PARTS * EACH };

int main(void) {
    start();
    static int out[ALL], in[ALL];
    int last[2] = {0, 3}, arrived = 0;
    MPI_Request requests[2];
    MPI_Psend_init(out, PARTS, EACH, MPI_INT, after, 7, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
    MPI_Precv_init(in, PARTS, EACH, MPI_INT, before, 7, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
    beat();
    for (int i = 0; i < 3; i++) {
        fill(out, ALL, 10 * i + rank);
        MPI_Startall(2, requests);
        if (i == 2) beat();
        MPI_Pready_range(1, 2, requests[0]);
        MPI_Pready_list(2, last, requests[0]);
        beat();
        if (i == 1)
            for (arrived = 0; !arrived; sched_yield()) MPI_Parrived(requests[1], 3, &arrived);
        beat();
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        CHECK(filled(in, ALL, 10 * i + before));
        memset(in, 0, sizeof in);
        beat();
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    beat();
    say("through");
    return done("partitioned");
}
