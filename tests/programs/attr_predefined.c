// The attributes that MPI itself sets.
#include "state.h"

int main(void) {
    start();
    int *bound, *host, *clock, *last, flag, in = -1;
    for (int i = 0; i < 4; i++) {
        MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &bound, &flag);
        CHECK(flag && *bound >= 32767);
        MPI_Send(&i, 1, MPI_INT, after, 32767 - i, MPI_COMM_WORLD);
        beat();
        MPI_Recv(&in, 1, MPI_INT, before, 32767 - i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(in == i);
    }
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, &clock, &flag);
    CHECK(!flag || *clock == 0 || *clock == 1);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_HOST, &host, &flag);
    CHECK(!flag || *host == MPI_PROC_NULL || (*host >= 0 && *host < size));
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last, &flag);
    CHECK(flag && *last >= MPI_ERR_LASTCODE);
    beat();
    say("tags to 32767");
    return done("attr_predefined");
}
