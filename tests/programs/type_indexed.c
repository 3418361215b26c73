// Indexed types: by elements, by bytes, in equal blocks of either.
#include "state.h"

int main(void) {
    start();
    int lengths[3] = {1, 2, 1}, places[3] = {5, 0, 8}, equal[3] = {7, 0, 3}, out[10], in[4], in6[6];
    MPI_Aint bytes[3] = {20, 0, 32}, equal_bytes[3] = {28, 0, 12};
    MPI_Datatype types[4];
    MPI_Type_indexed(3, lengths, places, MPI_INT, &types[0]);
    MPI_Type_create_hindexed(3, lengths, bytes, MPI_INT, &types[1]);
    MPI_Type_create_indexed_block(3, 2, equal, MPI_INT, &types[2]);
    MPI_Type_create_hindexed_block(3, 2, equal_bytes, MPI_INT, &types[3]);
    for (int i = 0; i < 4; i++) MPI_Type_commit(&types[i]);
    fill(out, 10, rank);
    for (int i = 0; i < 4; i++) {
        MPI_Send(out, 1, types[i], after, i, MPI_COMM_WORLD);
        beat();
    }
    int base = before * 1000003;
    for (int i = 0; i < 2; i++) {
        MPI_Recv(in, 4, MPI_INT, before, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(in[0] == base + 5 && in[1] == base && in[2] == base + 1 && in[3] == base + 8);
        meet();
        MPI_Recv(in6, 6, MPI_INT, before, 2 + i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(in6[0] == base + 7 && in6[1] == base + 8 && in6[2] == base && in6[5] == base + 4);
        meet();
    }
    for (int i = 0; i < 4; i++) MPI_Type_free(&types[i]);
    beat();
    say("last %d", in6[5]);
    return done("type_indexed");
}
