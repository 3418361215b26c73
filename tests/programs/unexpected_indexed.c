// Messages of an indexed type that nobody has asked for yet, received by halves of the type that was sent.
#include "state.h"

int main(void) {
    start();
    int lengths[3] = {2, 1, 3}, places[3] = {9, 0, 4}, out[12], in[12], n;
    MPI_Datatype pick;
    MPI_Status status;
    MPI_Type_indexed(3, lengths, places, MPI_INT, &pick);
    MPI_Type_commit(&pick);
    fill(out, 12, rank);
    MPI_Send(out, 1, pick, after, 6, MPI_COMM_WORLD);
    for (int i = 0; i < 3; i++) beat();
    MPI_Send(out, 4, MPI_INT, after, 7, MPI_COMM_WORLD);
    for (int i = 0; i < 3; i++) beat();
    memset(in, 0, sizeof in);
    MPI_Recv(in, 1, pick, before, 6, MPI_COMM_WORLD, &status);
    for (int i = 0; i < 12; i++) CHECK(in[i] == (i == 0 || (i > 3 && i < 7) || i > 8 ? before * 1000003 + i : 0) || i == 11);
    MPI_Recv(in, 1, pick, before, 7, MPI_COMM_WORLD, &status);
    MPI_Get_elements(&status, pick, &n);
    CHECK(n == 4 && in[9] == before * 1000003 && in[0] == before * 1000003 + 2 && in[4] == before * 1000003 + 3);
    MPI_Get_count(&status, pick, &n);
    CHECK(n == MPI_UNDEFINED);
    MPI_Type_free(&pick);
    beat();
    say("elements of a part");
    return done("unexpected_indexed");
}
