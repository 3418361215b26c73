// What MPI says of itself: initialised, not finalised, its version, the thread level that it gave, its processor; and that it
// is finalised, at its end.
#include "state.h"

int main(void) {
    int flag, n, length, version, minor, given, level, versions[2];
    char name[MPI_MAX_PROCESSOR_NAME];
    static char library[MPI_MAX_LIBRARY_VERSION_STRING], told_now[MPI_MAX_LIBRARY_VERSION_STRING];
    MPI_Get_version(&versions[0], &versions[1]);
    MPI_Get_library_version(library, &length);
    MPI_Initialized(&flag);
    CHECK(!flag);
    MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &given);
    started();
    for (int i = 0; i < 6; i++) {
        beat();
        MPI_Initialized(&flag);
        CHECK(flag);
        MPI_Finalized(&flag);
        CHECK(!flag);
        MPI_Get_version(&version, &minor);
        CHECK(version >= 3 && version == versions[0] && minor == versions[1]);
        MPI_Get_library_version(told_now, &n);
        CHECK(n == length && !strcmp(told_now, library));
        MPI_Query_thread(&level);
        CHECK(level == given);
        MPI_Is_thread_main(&flag);
        CHECK(flag);
        MPI_Get_processor_name(name, &n);
        CHECK(n > 0 && (int)strlen(name) == n);
    }
    say("alive");
    int code = done("life_of_mpi");
    MPI_Initialized(&flag);
    if (!flag) code = 1;
    MPI_Finalized(&flag);
    return flag ? code : 1;
}
