// Messages of a structure type that nobody has asked for yet.
#include "state.h"
#include <stddef.h>

typedef struct {
    char c;
    double d[3];
    short s;
    int i;
} Thing;

int main(void) {
    start();
    Thing out[3], in[3];
    int lengths[4] = {1, 3, 1, 1};
    MPI_Aint places[4] = {offsetof(Thing, c), offsetof(Thing, d), offsetof(Thing, s), offsetof(Thing, i)};
    MPI_Datatype parts[4] = {MPI_CHAR, MPI_DOUBLE, MPI_SHORT, MPI_INT}, raw, thing;
    MPI_Type_create_struct(4, lengths, places, parts, &raw);
    MPI_Type_create_resized(raw, 0, sizeof(Thing), &thing);
    MPI_Type_commit(&thing);
    MPI_Type_free(&raw);
    for (int i = 0; i < 3; i++) out[i] = (Thing){(char)('a' + i), {rank, rank + 0.5, i}, (short)(rank * 7 + i), 99 - i};
    MPI_Send(out, 3, thing, after, 0, MPI_COMM_WORLD);
    for (int i = 0; i < 4; i++) beat();
    memset(in, 0x55, sizeof in);
    MPI_Recv(in, 3, thing, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < 3; i++)
        CHECK(in[i].c == 'a' + i && in[i].d[1] == before + 0.5 && in[i].s == before * 7 + i && in[i].i == 99 - i);
    CHECK(((unsigned char *)in)[1] == 0x55);
    MPI_Type_free(&thing);
    beat();
    say("%c %.1f", in[2].c, in[2].d[1]);
    return done("unexpected_struct");
}
