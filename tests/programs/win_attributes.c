// What is known of a window: base, size, unit, its model, name, group, attributes, error handler.
#include "state.h"

static int deleted;

static int drop(MPI_Win win, int key, void *value, void *extra) {
    (void)key, (void)extra;
    CHECK(win != MPI_WIN_NULL && value);
    return deleted++, MPI_SUCCESS;
}

int main(void) {
    start();
    static double memory[16];
    int flag, key, n, *unit;
    char name[MPI_MAX_OBJECT_NAME];
    void *base, *value;
    MPI_Aint *bytes;
    MPI_Win win;
    MPI_Group group;
    MPI_Errhandler handler;
    MPI_Win_create(memory, sizeof memory, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, drop, &key, NULL);
    MPI_Win_set_attr(win, key, memory);
    MPI_Win_set_name(win, "pane");
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    for (int i = 0; i < 4; i++) {
        beat();
        MPI_Win_get_attr(win, MPI_WIN_BASE, &base, &flag);
        CHECK(flag && base == memory);
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
    CHECK(deleted == 1);
    MPI_Win_free_keyval(&key);
    beat();
    say("%s", name);
    return done("win_attributes");
}
