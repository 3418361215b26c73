// Statuses that the program keeps and asks later: counts by several types, elements, one of its own making.
#include "state.h"

int main(void) {
    start();
    MPI_Status kept[3], own;
    MPI_Datatype triple;
    int out[6] = {0}, in[6], n, flag;
    MPI_Type_contiguous(3, MPI_INT, &triple);
    MPI_Type_commit(&triple);
    for (int i = 0; i < 3; i++) {
        MPI_Sendrecv(out, 2 + 2 * i, MPI_INT, after, i, in, 6, MPI_INT, before, i, MPI_COMM_WORLD, &kept[i]);
        beat();
    }
    MPI_Status_set_elements(&own, MPI_DOUBLE, 9);
    MPI_Status_set_cancelled(&own, 1);
    for (int i = 0; i < 3; i++) beat();
    for (int i = 0; i < 3; i++) {
        MPI_Get_count(&kept[i], MPI_INT, &n);
        CHECK(n == 2 + 2 * i && kept[i].MPI_TAG == i);
        MPI_Get_count(&kept[i], triple, &n);
        CHECK(n == (i == 2 ? 2 : MPI_UNDEFINED));
        MPI_Get_elements(&kept[i], triple, &n);
        CHECK(n == 2 + 2 * i);
    }
    MPI_Get_count(&own, MPI_DOUBLE, &n);
    MPI_Test_cancelled(&own, &flag);
    CHECK(n == 9 && flag);
    MPI_Type_free(&triple);
    beat();
    say("count %d", n);
    return done("status_kept");
}
