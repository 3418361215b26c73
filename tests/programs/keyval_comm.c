// Attributes of communicators: their copy and delete callbacks, across copies and frees, that of their key included, and a
// copy that fails.
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

static int refuse(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag) {
    (void)comm, (void)key, (void)extra, (void)in, (void)out, (void)flag;
    return MPI_ERR_OTHER;
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
    MPI_Comm one, two, three;
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
    MPI_Comm_set_attr(MPI_COMM_SELF, key, values + 4);
    int freed = key, others[4];
    MPI_Comm_free_keyval(&key);
    CHECK(key == MPI_KEYVAL_INVALID);
    // Keys made now are others than the one that was freed.
    for (int i = 0; i < 4; i++) MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &others[i], NULL);
    for (int i = 0; i < 2; i++) beat();
    MPI_Comm_dup(two, &three);
    CHECK(copied == 2);
    beat();
    MPI_Comm_free(&three);
    CHECK(deleted == 3);
    MPI_Comm_delete_attr(MPI_COMM_SELF, freed);
    CHECK(deleted == 4);
    for (int i = 0; i < 4; i++) MPI_Comm_free_keyval(&others[i]);
    beat();
    MPI_Comm_free(&two);
    CHECK(deleted == 5);
    MPI_Comm_create_keyval(refuse, MPI_COMM_NULL_DELETE_FN, &key, NULL);
    MPI_Comm_set_attr(one, key, values);
    MPI_Comm_set_errhandler(one, MPI_ERRORS_RETURN);
    three = MPI_COMM_WORLD;
    CHECK(MPI_Comm_dup(one, &three) != MPI_SUCCESS && three == MPI_COMM_NULL);
    MPI_Comm_free_keyval(&key);
    beat();
    MPI_Comm_get_attr(one, plain, &value, &flag);
    CHECK(flag && value == values + 5);
    MPI_Comm_free(&one);
    beat();
    say("%d copied %d deleted", copied, deleted);
    return done("keyval_comm");
}
