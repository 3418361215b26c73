// What is known of windows: how they were made, base, size, unit, model, name, group, attributes, error handler.
#include "state.h"

static int deleted;

static int drop(MPI_Win win, int key, void *value, void *extra) {
    (void)key, (void)extra;
    CHECK(win != MPI_WIN_NULL && value);
    return deleted++, MPI_SUCCESS;
}

/* How a window was made, where its memory lies, and its model. */
static void made(MPI_Win win, int flavor, void *base) {
    int flag, *number;
    void *at;
    MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &number, &flag);
    CHECK(flag && *number == flavor);
    MPI_Win_get_attr(win, MPI_WIN_MODEL, &number, &flag);
    CHECK(flag && (*number == MPI_WIN_UNIFIED || *number == MPI_WIN_SEPARATE));
    MPI_Win_get_attr(win, MPI_WIN_BASE, &at, &flag);
    CHECK(flag && at == base);
}

int main(void) {
    start();
    static double memory[16];
    int flag, key, n, *unit;
    char name[MPI_MAX_OBJECT_NAME];
    void *value, *lent;
    MPI_Aint *bytes;
    MPI_Win win, allocated, dynamic;
    MPI_Group group;
    MPI_Errhandler handler;
    MPI_Win_create(memory, sizeof memory, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_allocate(256, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &lent, &allocated);
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &dynamic);
    MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, drop, &key, NULL);
    MPI_Win_set_attr(win, key, memory);
    MPI_Win_set_name(win, "pane");
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    for (int i = 0; i < 4; i++) {
        beat();
        made(win, MPI_WIN_FLAVOR_CREATE, memory);
        made(allocated, MPI_WIN_FLAVOR_ALLOCATE, lent);
        made(dynamic, MPI_WIN_FLAVOR_DYNAMIC, MPI_BOTTOM);
        MPI_Win_get_attr(win, MPI_WIN_SIZE, &bytes, &flag);
        CHECK(flag && *bytes == sizeof memory);
        MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &unit, &flag);
        CHECK(flag && *unit == 8);
        MPI_Win_get_attr(win, key, &value, &flag);
        MPI_Win_get_name(win, name, &n);
        MPI_Win_get_errhandler(win, &handler);
        CHECK(flag && value == memory && !strcmp(name, "pane") && handler == MPI_ERRORS_RETURN);
    }
    MPI_Win_get_group(win, &group);
    MPI_Group_size(group, &n);
    MPI_Group_free(&group);
    CHECK(n == size);
    MPI_Win_free(&win);
    MPI_Win_free(&allocated);
    MPI_Win_free(&dynamic);
    CHECK(deleted == 1);
    MPI_Win_free_keyval(&key);
    beat();
    say("%s", name);
    return done("win_attributes");
}
