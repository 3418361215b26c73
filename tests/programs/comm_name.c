// Names of communicators, types and windows.
#include "state.h"

int main(void) {
    start();
    MPI_Comm copy;
    MPI_Datatype pair;
    char name[MPI_MAX_OBJECT_NAME];
    int n;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_set_name(copy, "copy of all");
    MPI_Comm_set_name(MPI_COMM_SELF, "alone");
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_set_name(pair, "a pair");
    for (int i = 0; i < 3; i++) {
        ring(copy);
        MPI_Comm_get_name(copy, name, &n);
        CHECK(!strcmp(name, "copy of all") && n == 11);
        MPI_Comm_get_name(MPI_COMM_SELF, name, &n);
        CHECK(!strcmp(name, "alone"));
        MPI_Type_get_name(pair, name, &n);
        CHECK(!strcmp(name, "a pair"));
        MPI_Comm_get_name(MPI_COMM_WORLD, name, &n);
        CHECK(!strcmp(name, "MPI_COMM_WORLD"));
        MPI_Type_get_name(MPI_DOUBLE, name, &n);
        CHECK(!strcmp(name, "MPI_DOUBLE"));
    }
    MPI_Comm_set_name(MPI_COMM_WORLD, "everyone");
    for (int i = 0; i < 2; i++) beat();
    MPI_Comm_get_name(MPI_COMM_WORLD, name, &n);
    CHECK(!strcmp(name, "everyone"));
    MPI_Type_free(&pair);
    MPI_Comm_free(&copy);
    say("%s", name);
    return done("comm_name");
}
