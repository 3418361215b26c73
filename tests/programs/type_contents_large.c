// What a structure of a hundred blocks was made of, some of a type that is gone; and a living type, of which a second handle
// is got and freed while the first goes on to be used.
#include "state.h"

enum { BLOCKS = 100, EVERY = 10 };

int main(void) {
    start();
    int lengths[BLOCKS], ints, addresses, types, how, list[BLOCKS + 1], out[2 * BLOCKS], in[2 * BLOCKS];
    MPI_Aint places[BLOCKS], at[BLOCKS];
    MPI_Datatype pair, parts[BLOCKS], got[BLOCKS], large, row, living, again;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    for (int i = 0; i < BLOCKS; i++) lengths[i] = 1, places[i] = 8 * i, parts[i] = i % EVERY ? MPI_INT : pair;
    MPI_Type_create_struct(BLOCKS, lengths, places, parts, &large);
    MPI_Type_free(&pair);
    MPI_Type_commit(&large);
    MPI_Type_contiguous(2, MPI_INT, &living);
    MPI_Type_commit(&living);
    MPI_Type_vector(3, 1, 2, living, &row);
    for (int turn = 0; turn < 2; turn++) {
        beat();
        MPI_Type_get_envelope(large, &ints, &addresses, &types, &how);
        CHECK(ints == BLOCKS + 1 && addresses == BLOCKS && types == BLOCKS && how == MPI_COMBINER_STRUCT);
        MPI_Type_get_contents(large, ints, addresses, types, list, at, got);
        MPI_Type_get_contents(row, 3, 0, 1, list, at + 1, &again);
        beat();
        for (int i = 0; i < BLOCKS; i++) CHECK((got[i] == MPI_INT) == (i % EVERY != 0));
        CHECK(list[0] == 3 && list[1] == 1 && list[2] == 2 && at[0] == 0 && at[BLOCKS - 1] == 8 * (BLOCKS - 1));
        for (int i = 0; i < BLOCKS; i += EVERY) {
            MPI_Type_commit(&got[i]);
            fill(out, 2, rank + i);
            MPI_Sendrecv(out, 1, got[i], after, i, in, 2, MPI_INT, before, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(filled(in, 2, before + i));
            MPI_Type_free(&got[i]);
        }
        MPI_Type_free(&again);
        beat();
        fill(out, 2 * BLOCKS, rank);
        memset(in, 0, sizeof in);
        MPI_Sendrecv(out, 1, large, after, 1, in, 1, large, before, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < 2 * BLOCKS; i++)
            CHECK(in[i] == (i % 2 == 0 || i / 2 % EVERY == 0 ? before * 1000003 + i : 0));
        MPI_Sendrecv(out, 3, living, after, 2, in, 6, MPI_INT, before, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(filled(in, 6, before));
    }
    MPI_Type_free(&large), MPI_Type_free(&row), MPI_Type_free(&living);
    beat();
    say("%d integers", ints);
    return done("type_contents_large");
}
