// Every named operation for reductions, by Reduce_local and by reductions between beats.
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
    for (int i = 0; i < 2; i++) {
        MPI_Op op = i ? MPI_MAXLOC : MPI_MINLOC;
        int in[2] = {12, 7}, io[2] = {10, 8}, own[2] = {rank ? 3 : 5, rank}, all[2];
        MPI_Reduce_local(in, io, 1, MPI_2INT, op);
        CHECK(io[0] == (i ? 12 : 10) && io[1] == (i ? 7 : 8));
        beat();
        MPI_Allreduce(own, all, 1, MPI_2INT, op, MPI_COMM_WORLD);
        CHECK(all[0] == (i ? 5 : 3) && all[1] == (i ? 0 : 1));
    }
    say("twelve");
    return done("reduce_local");
}
