// A type that was freed, and that another is made of, comes once more as what that one contains, and is freed once more: its
// attribute is deleted when the library frees it, and is not that of the next type.
#include "state.h"

static int deleted;

static int drop(MPI_Datatype type, int key, void *value, void *extra) {
    (void)type, (void)key, (void)extra;
    deleted += *(int *)value;
    return MPI_SUCCESS;
}

int main(void) {
    start();
    int key, value = 1, ints, addresses, types, combiner, numbers[4];
    MPI_Aint places[1];
    MPI_Datatype old, made, again, next, other;
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, drop, &key, NULL);
    MPI_Type_contiguous(2, MPI_INT, &old);
    MPI_Type_set_attr(old, key, &value);
    MPI_Type_contiguous(3, old, &made);
    MPI_Type_commit(&made);
    MPI_Type_free(&old);
    for (int i = 0; i < 3; i++) {
        MPI_Type_get_envelope(made, &ints, &addresses, &types, &combiner);
        CHECK(combiner == MPI_COMBINER_CONTIGUOUS && types == 1);
        MPI_Type_get_contents(made, ints, addresses, types, numbers, places, &again);
        beat();
        MPI_Type_free(&again);
        MPI_Type_vector(2, 1, 2, MPI_INT, &next);
        MPI_Type_contiguous(2, next, &other);
        MPI_Type_free(&next);
        for (int k = 0; k < 2; k++) beat();
        CHECK(deleted == 0);
        MPI_Type_free(&other);
    }
    MPI_Type_free(&made);
    beat();
    CHECK(deleted == 1);
    return done("type_handle_again");
}
