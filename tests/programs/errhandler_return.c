// Errors that return, with the text and the class of each, and codes of the program's own.
#include "state.h"

int main(void) {
    start();
    int class, code, own_class, own_code, n, in[2];
    char words[MPI_MAX_ERROR_STRING];
    MPI_Errhandler was;
    MPI_Status status;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Add_error_class(&own_class);
    MPI_Add_error_code(own_class, &own_code);
    MPI_Add_error_string(own_code, "of our own");
    for (int i = 0; i < 3; i++) {
        beat();
        code = MPI_Send(in, 1, MPI_INT, -77, 0, MPI_COMM_WORLD);
        MPI_Error_class(code, &class);
        CHECK(class == MPI_ERR_RANK);
        MPI_Error_class(own_code, &class);
        MPI_Error_string(own_code, words, &n);
        CHECK(class == own_class && !strcmp(words, "of our own"));
    }
    MPI_Send(in, 2, MPI_INT, after, 1, MPI_COMM_WORLD);
    beat();
    code = MPI_Recv(in, 1, MPI_INT, before, 1, MPI_COMM_WORLD, &status);
    MPI_Error_class(code, &class);
    CHECK(class == MPI_ERR_TRUNCATE);
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &was);
    CHECK(was == MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    beat();
    say("%s", words);
    return done("errhandler_return");
}
