// Attributes of datatypes, by the ready-made copying callbacks and by the program's.
#include "state.h"

static int deleted;

static int drop(MPI_Datatype type, int key, void *value, void *extra) {
    (void)key, (void)extra;
    CHECK(type != MPI_DATATYPE_NULL);
    deleted += *(int *)value;
    return MPI_SUCCESS;
}

int main(void) {
    start();
    int key, flag, values[2] = {3, 40};
    void *value;
    MPI_Datatype pair, copy;
    MPI_Type_create_keyval(MPI_TYPE_DUP_FN, drop, &key, NULL);
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_set_attr(pair, key, &values[0]);
    for (int i = 0; i < 3; i++) beat();
    MPI_Type_dup(pair, &copy);
    for (int i = 0; i < 3; i++) beat();
    MPI_Type_get_attr(copy, key, &value, &flag);
    CHECK(flag && value == &values[0]);
    MPI_Type_set_attr(copy, key, &values[1]);
    CHECK(deleted == 3);
    MPI_Type_free(&pair);
    for (int i = 0; i < 3; i++) beat();
    MPI_Type_get_attr(copy, key, &value, &flag);
    CHECK(flag && value == &values[1]);
    MPI_Type_free_keyval(&key);
    MPI_Type_free(&copy);
    CHECK(deleted == 46);
    beat();
    say("deleted %d", deleted);
    return done("keyval_type");
}
