// What MPI says of itself: initialised, not finalised, its version, its thread level, its processor.
#include "state.h"

int main(void) {
    int flag, n, version, minor, level;
    char name[MPI_MAX_PROCESSOR_NAME];
    MPI_Initialized(&flag);
    CHECK(!flag);
    start();
    for (int i = 0; i < 6; i++) {
        beat();
        MPI_Initialized(&flag);
        CHECK(flag);
        MPI_Finalized(&flag);
        CHECK(!flag);
        MPI_Get_version(&version, &minor);
        CHECK(version >= 3);
        MPI_Query_thread(&level);
        CHECK(level >= MPI_THREAD_SINGLE);
        MPI_Get_processor_name(name, &n);
        CHECK(n > 0 && (int)strlen(name) == n);
    }
    say("alive");
    return done("life_of_mpi");
}
