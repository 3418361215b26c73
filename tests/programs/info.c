// Info objects with their keys in order, copies of them, and one that is gone; and one with entries that are longer than
// any of another library may be.
#include "state.h"

int main(void) {
    start();
    MPI_Info info, copy, full;
    char value[20], key[MPI_MAX_INFO_KEY + 1], longest[MPI_MAX_INFO_VAL];
    int n, flag, length;
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = 0;
    MPI_Info_create(&full);
    MPI_Info_set(full, "long", longest);
    longest[MPI_MAX_INFO_KEY - 1] = 0;
    MPI_Info_set(full, longest, "key");
    MPI_Info_set(full, "short", "text");
    MPI_Info_create(&info);
    MPI_Info_set(info, "colour", "green");
    beat();
    MPI_Info_set(info, "size", "12");
    MPI_Info_dup(info, &copy);
    for (int i = 0; i < 3; i++) beat();
    MPI_Info_set(info, "colour", "blue");
    MPI_Info_delete(info, "size");
    for (int i = 0; i < 3; i++) beat();
    MPI_Info_get_nkeys(copy, &n);
    CHECK(n == 2);
    MPI_Info_get_nthkey(copy, 1, key);
    CHECK(!strcmp(key, "size"));
    MPI_Info_get(copy, "colour", 19, value, &flag);
    CHECK(flag && !strcmp(value, "green"));
    MPI_Info_free(&copy);
    beat();
    MPI_Info_get(info, "colour", 19, value, &flag);
    CHECK(flag && !strcmp(value, "blue"));
    MPI_Info_get_valuelen(info, "colour", &length, &flag);
    CHECK(flag && length == 4);
    MPI_Info_get(info, "size", 19, value, &flag);
    CHECK(!flag);
    MPI_Info_free(&info);
    beat();
    MPI_Info_get(full, "short", 19, value, &flag);
    CHECK(flag && !strcmp(value, "text"));
    MPI_Info_free(&full);
    beat();
    say("%s", value);
    return done("info");
}
