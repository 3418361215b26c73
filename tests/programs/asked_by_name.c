// What the program's MPI has is found by its name, and of what it lacks the linker says so.
// flags: -ldl
#define _GNU_SOURCE
#include "state.h"
#include <dlfcn.h>

/* Of MPI 3.0, 4.0, 4.1 and 5.0, and of none. */
static const char *names[] = {"MPI_Ibarrier", "MPI_Session_init", "MPI_Send_c", "MPI_Request_get_status_all",
                              "MPI_Comm_attach_buffer", "PMPI_Abi_get_version", "MPI_No_such_procedure"};
enum { NAMES = sizeof names / sizeof *names };

int main(void) {
    start();
    void *first[NAMES];
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < NAMES; i++) {
            dlerror();
            void *found = dlsym(RTLD_DEFAULT, names[i]);
            CHECK((found == NULL) == (dlerror() != NULL));
            if (round == 0) first[i] = found;
            CHECK(found == first[i]);
        }
        beat();
    }
    CHECK(first[0] && !first[NAMES - 1]);
    say("asked");
    return done("asked_by_name");
}
