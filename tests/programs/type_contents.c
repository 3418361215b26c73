// What a type was made of, asked for after a while.
#include "state.h"

int main(void) {
    start();
    MPI_Datatype pair, row, part;
#ifdef MPIX_C_FLOAT16
    int count;
    // A predefined type that no other MPI has is the same whoever names it.
    MPI_Type_contiguous(2, MPIX_C_FLOAT16, &pair);
    MPI_Type_get_contents(pair, 1, 0, 1, &count, NULL, &part);
    CHECK(part == MPIX_C_FLOAT16);
    MPI_Type_free(&pair);
#endif
    MPI_Type_contiguous(2, MPI_DOUBLE, &pair);
    MPI_Type_vector(3, 2, 5, pair, &row);
    MPI_Type_free(&pair);
    for (int i = 0; i < 4; i++) {
        int ints, addresses, types, how, list[3];
        MPI_Aint none[1];
        beat();
        MPI_Type_get_envelope(row, &ints, &addresses, &types, &how);
        CHECK(ints == 3 && addresses == 0 && types == 1 && how == MPI_COMBINER_VECTOR);
        MPI_Type_get_contents(row, ints, addresses, types, list, none, &part);
        CHECK(list[0] == 3 && list[1] == 2 && list[2] == 5);
        beat();
        MPI_Type_get_envelope(part, &ints, &addresses, &types, &how);
        CHECK(ints == 1 && how == MPI_COMBINER_CONTIGUOUS);
        MPI_Type_get_contents(part, ints, addresses, types, list, none, &pair);
        CHECK(list[0] == 2 && pair == MPI_DOUBLE);
        MPI_Type_free(&part);
    }
    int ints, addresses, types, how;
    MPI_Type_get_envelope(MPI_INT, &ints, &addresses, &types, &how);
    CHECK(how == MPI_COMBINER_NAMED);
    MPI_Type_free(&row);
    beat();
    say("of vectors");
    return done("type_contents");
}
