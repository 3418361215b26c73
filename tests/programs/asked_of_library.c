// Procedures that a program finds by the handle of its MPI library, as Python's ctypes does, are those that it calls by name.
// flags: -ldl
#define _GNU_SOURCE
#include "state.h"
#include <dlfcn.h>

static const char *libraries[] = {"libmpi.so.40", "libmpich.so.12", "libmpi.so.12", "libmpi_abi.so.0", "libmpi_abi.so.1"};

static void *procedure(const char *name) {
    for (int i = 0; i < (int)(sizeof libraries / sizeof *libraries); i++) {
        void *library = dlopen(libraries[i], RTLD_NOW | RTLD_NOLOAD);
        dlerror();
        void *found = library != NULL ? dlsym(library, name) : NULL;
        if (found != NULL && dlerror() == NULL) return found;
    }
    return NULL;
}

int main(void) {
    start();
    int last = 0, ranks = 0;
    int (*size)(MPI_Comm, int *) = (int (*)(MPI_Comm, int *))procedure("MPI_Comm_size");
    int (*send)(const void *, int, MPI_Datatype, int, int, MPI_Comm) =
        (int (*)(const void *, int, MPI_Datatype, int, int, MPI_Comm))procedure("MPI_Send");
    int (*allreduce)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm) =
        (int (*)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm))procedure("PMPI_Allreduce");
    CHECK(size != NULL && send != NULL && allreduce != NULL);
    CHECK(procedure("MPI_No_such_procedure") == NULL);
    MPI_Comm own;
    MPI_Comm_dup(MPI_COMM_WORLD, &own);
    for (int i = 1; i < 4; i++) {
        size(own, &ranks);
        send(&i, 1, MPI_INT, after, i, own);
        beat();
        MPI_Recv(&last, 1, MPI_INT, before, i, own, MPI_STATUS_IGNORE);
        int sum = 0;
        allreduce(&last, &sum, 1, MPI_INT, MPI_SUM, own);
        CHECK(sum == i * ranks);
        CHECK((void *)size == procedure("MPI_Comm_size"));
    }
    MPI_Comm_free(&own);
    say("last %d", last);
    return done("asked_of_library");
}
