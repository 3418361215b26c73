// Packed buffers, complete and half unpacked, in the machine's form and in the portable one.
#include "state.h"

int main(void) {
    start();
    char buffer[200], portable[200];
    int at = 0, in[3], numbers[3] = {rank, rank + 1, rank + 2}, most;
    double d = rank + 0.5, back = 0;
    MPI_Aint place = 0, space;
    MPI_Pack_size(3, MPI_INT, MPI_COMM_WORLD, &most);
    CHECK(most >= 12);
    MPI_Pack(numbers, 3, MPI_INT, buffer, sizeof buffer, &at, MPI_COMM_WORLD);
    beat();
    MPI_Pack(&d, 1, MPI_DOUBLE, buffer, sizeof buffer, &at, MPI_COMM_WORLD);
    MPI_Send(buffer, at, MPI_PACKED, after, 0, MPI_COMM_WORLD);
    beat();
    MPI_Recv(buffer, sizeof buffer, MPI_PACKED, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    at = 0;
    MPI_Unpack(buffer, sizeof buffer, &at, in, 3, MPI_INT, MPI_COMM_WORLD);
    CHECK(in[0] == before && in[2] == before + 2);
    beat();
    MPI_Unpack(buffer, sizeof buffer, &at, &back, 1, MPI_DOUBLE, MPI_COMM_WORLD);
    CHECK(back == before + 0.5);
    MPI_Pack_external_size("external32", 3, MPI_INT, &space);
    MPI_Pack_external("external32", numbers, 3, MPI_INT, portable, sizeof portable, &place);
    CHECK(space == 12 && place == 12 && portable[3] == rank && portable[0] == 0);
    for (int i = 0; i < 3; i++) beat();
    place = 0;
    MPI_Unpack_external("external32", portable, sizeof portable, &place, in, 3, MPI_INT);
    CHECK(in[2] == rank + 2);
    beat();
    say("unpacked %.1f", back);
    return done("pack");
}
