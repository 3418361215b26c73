// A file that is only read, in a program for which errors of files are fatal.
#include "state.h"

int main(void) {
    start();
    char name[40];
    int number = -1;
    sprintf(name, "file_fatal.%d.data", rank);
    FILE *make = fopen(name, "w");
    for (int i = 0; i < 20; i++) number = 100 * rank + i, fwrite(&number, sizeof number, 1, make);
    fclose(make);
    MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_ARE_FATAL);
    MPI_File file;
    MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    for (int i = 0; i < 4; i++) {
        beat();
        MPI_File_read(file, &number, 1, MPI_INT, MPI_STATUS_IGNORE);
        CHECK(number == 100 * rank + i);
    }
    MPI_Errhandler handler;
    MPI_File_get_errhandler(file, &handler);
    CHECK(handler == MPI_ERRORS_ARE_FATAL);
    MPI_Errhandler_free(&handler);
    MPI_File_close(&file);
    remove(name);
    say("read %d", number);
    return done("file_fatal");
}
