// What a type was made of, asked for after a while: types, and constants among the integers.
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
    // Of parts of arrays, constants are among the integers.
    int whole[2] = {6, 4}, piece[2] = {2, 3}, from[2] = {1, 0}, ways[2] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_NONE};
    int arguments[2] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG}, grid[2] = {size, 1};
    MPI_Datatype array, share;
    MPI_Type_create_subarray(2, whole, piece, from, MPI_ORDER_FORTRAN, MPI_INT, &array);
    MPI_Type_create_darray(size, rank, 2, whole, ways, arguments, grid, MPI_ORDER_C, MPI_INT, &share);
    for (int i = 0; i < 2; i++) {
        int ints, addresses, types, how, list[12];
        MPI_Aint none[1];
        beat();
        MPI_Type_get_envelope(array, &ints, &addresses, &types, &how);
        CHECK(ints == 8 && types == 1 && how == MPI_COMBINER_SUBARRAY);
        MPI_Type_get_contents(array, ints, addresses, types, list, none, &part);
        CHECK(list[0] == 2 && list[3] == 2 && list[7] == MPI_ORDER_FORTRAN && part == MPI_INT);
        MPI_Type_get_envelope(share, &ints, &addresses, &types, &how);
        CHECK(ints == 12 && types == 1 && how == MPI_COMBINER_DARRAY);
        MPI_Type_get_contents(share, ints, addresses, types, list, none, &part);
        CHECK(list[2] == 2 && list[5] == MPI_DISTRIBUTE_CYCLIC && list[6] == MPI_DISTRIBUTE_NONE);
        CHECK(list[7] == MPI_DISTRIBUTE_DFLT_DARG && list[9] == size && list[11] == MPI_ORDER_C && part == MPI_INT);
    }
    MPI_Type_free(&array);
    MPI_Type_free(&share);
    int ints, addresses, types, how;
    MPI_Type_get_envelope(MPI_INT, &ints, &addresses, &types, &how);
    CHECK(how == MPI_COMBINER_NAMED);
    MPI_Type_free(&row);
    beat();
    say("of vectors");
    return done("type_contents");
}
