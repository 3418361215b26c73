// Attributes of communicators: their copy and delete callbacks, across copies and frees.
// refuses: key was freed
#include "state.h"

static int copied, deleted;
static char state[] = "extra";

static int copy(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag) {
    CHECK(extra == state && comm != MPI_COMM_NULL && key != MPI_KEYVAL_INVALID);
    copied++;
    *(void **)out = (char *)in + 1;
    *flag = 1;
    return MPI_SUCCESS;
}

static int drop(MPI_Comm comm, int key, void *value, void *extra) {
    CHECK(extra == state && comm != MPI_COMM_NULL && key != MPI_KEYVAL_INVALID && value);
    deleted++;
    return MPI_SUCCESS;
}

int main(void) {
    start();
    static char values[8];
    int key, plain, flag;
    void *value;
    MPI_Comm one, two;
    MPI_Comm_create_keyval(copy, drop, &key, state);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &plain, NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &one);
    MPI_Comm_set_attr(one, key, values);
    MPI_Comm_set_attr(one, plain, values + 5);
    for (int i = 0; i < 3; i++) beat();
    MPI_Comm_dup(one, &two);
    MPI_Comm_get_attr(two, key, &value, &flag);
    CHECK(flag && value == values + 1 && copied == 1);
    MPI_Comm_get_attr(two, plain, &value, &flag);
    CHECK(!flag);
    for (int i = 0; i < 3; i++) beat();
    MPI_Comm_set_attr(two, key, values + 3);
    CHECK(deleted == 1);
    MPI_Comm_get_attr(two, key, &value, &flag);
    CHECK(flag && value == values + 3);
    MPI_Comm_delete_attr(one, key);
    CHECK(deleted == 2);
    MPI_Comm_free_keyval(&key);
    CHECK(key == MPI_KEYVAL_INVALID);
    for (int i = 0; i < 2; i++) beat();
    MPI_Comm_free(&two);
    CHECK(deleted == 3);
    MPI_Comm_get_attr(one, plain, &value, &flag);
    CHECK(flag && value == values + 5);
    MPI_Comm_free(&one);
    beat();
    say("%d copied %d deleted", copied, deleted);
    return done("keyval_comm");
}
