// Contiguous and copied types, committed and not, used after a while.
#include "state.h"

int main(void) {
    start();
    MPI_Datatype four, twelve, copy;
    int out[24], in[24], n;
    MPI_Aint low, extent;
    MPI_Type_contiguous(4, MPI_INT, &four);
    MPI_Type_contiguous(3, four, &twelve);
    MPI_Type_commit(&twelve);
    MPI_Type_dup(twelve, &copy);
    for (int i = 0; i < 4; i++) {
        fill(out, 24, rank + i);
        MPI_Send(out, 2, i % 2 ? copy : twelve, after, i, MPI_COMM_WORLD);
        meet();
        MPI_Recv(in, 2, i % 2 ? twelve : copy, before, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(filled(in, 24, before + i));
    }
    MPI_Type_size(four, &n);
    MPI_Type_get_extent(copy, &low, &extent);
    CHECK(n == 16 && low == 0 && extent == 48);
    MPI_Type_free(&four);
    MPI_Type_free(&twelve);
    ring(MPI_COMM_WORLD);
    MPI_Type_free(&copy);
    say("extent %d", (int)extent);
    return done("type_contiguous");
}
