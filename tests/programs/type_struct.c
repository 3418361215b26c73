// Structure types over the absolute addresses of variables (MPI_BOTTOM), and with types within types.
#include "state.h"

int main(void) {
    start();
    double d = 0.25 + rank;
    int i4[4], lengths[3] = {1, 1, 1};
    char c = (char)('k' + rank);
    MPI_Aint places[3];
    MPI_Datatype quad, parts[3] = {MPI_DOUBLE, MPI_CHAR, MPI_CHAR}, absolute;
    MPI_Type_contiguous(4, MPI_INT, &quad);
    parts[2] = quad;
    MPI_Get_address(&d, &places[0]);
    MPI_Get_address(&c, &places[1]);
    MPI_Get_address(i4, &places[2]);
    MPI_Type_create_struct(3, lengths, places, parts, &absolute);
    MPI_Type_commit(&absolute);
    MPI_Type_free(&quad);
    for (int i = 0; i < 3; i++) {
        fill(i4, 4, rank + i);
        d = rank + 0.25 * i, c = (char)('k' + rank);
        MPI_Send(MPI_BOTTOM, 1, absolute, after, 0, MPI_COMM_WORLD);
        beat();
        memset(i4, 0, sizeof i4);
        MPI_Recv(MPI_BOTTOM, 1, absolute, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(d == before + 0.25 * i && c == 'k' + before && filled(i4, 4, before + i));
        meet();
    }
    MPI_Type_free(&absolute);
    say("%c %.2f", c, d);
    return done("type_struct");
}
