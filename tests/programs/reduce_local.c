// Every named operation, by Reduce_local and by reductions between beats.
#include "state.h"

int main(void) {
    start();
    MPI_Op ops[10] = {MPI_MAX, MPI_MIN, MPI_SUM, MPI_PROD, MPI_LAND, MPI_BAND, MPI_LOR, MPI_BOR, MPI_LXOR, MPI_BXOR};
    int expected[10] = {12, 10, 22, 120, 1, 8, 1, 14, 0, 6};
    for (int i = 0; i < 10; i++) {
        int in = 12, io = 10;
        MPI_Reduce_local(&in, &io, 1, MPI_INT, ops[i]);
        CHECK(io == expected[i]);
        int own = rank + 1, all, check = 1;
        MPI_Allreduce(&own, &all, 1, MPI_INT, ops[i], MPI_COMM_WORLD);
        for (int r = 1; r < size; r++) {
            int next = r + 1;
            MPI_Reduce_local(&check, &next, 1, MPI_INT, ops[i]);
            check = next;
        }
        CHECK(all == check);
        if (i % 3 == 0) beat();
    }
    say("ten");
    return done("reduce_local");
}
