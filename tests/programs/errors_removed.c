// Error classes and codes of the program's own, of which some are removed and others come in their place.
// mpi: 5
#include "state.h"

static void is(int code, int class, const char *text) {
    int of = -1, length;
    char told[MPI_MAX_ERROR_STRING];
    MPI_Error_class(code, &of);
    CHECK(of == class);
    MPI_Error_string(code, told, &length);
    CHECK(strcmp(told, text) == 0);
}

int main(void) {
    start();
    int classes[2], codes[3];
    MPI_Add_error_class(&classes[0]);
    MPI_Add_error_code(classes[0], &codes[0]);
    MPI_Add_error_code(classes[0], &codes[1]);
    MPI_Add_error_string(classes[0], "first class");
    MPI_Add_error_string(codes[0], "first code");
    MPI_Add_error_string(codes[1], "second code");
    beat();
    MPI_Remove_error_string(codes[0]);
    MPI_Remove_error_code(codes[0]);
    beat();
    is(codes[1], classes[0], "second code");
    MPI_Add_error_class(&classes[1]);
    MPI_Add_error_code(classes[1], &codes[2]);
    MPI_Add_error_string(codes[2], "third code");
    beat();
    is(classes[0], classes[0], "first class");
    is(codes[1], classes[0], "second code");
    is(codes[2], classes[1], "third code");
    MPI_Remove_error_string(codes[2]);
    MPI_Remove_error_code(codes[2]);
    MPI_Remove_error_class(classes[1]);
    beat();
    is(codes[1], classes[0], "second code");
    say("through");
    return done("errors_removed");
}
