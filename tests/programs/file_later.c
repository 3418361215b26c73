// MPI files that are opened, deleted, renamed and read by other ways again and again: after a cut, too, none is the user's own.
#include "state.h"

static int class_of(int error) {
    int class;
    MPI_Error_class(error, &class);
    return class;
}

int main(void) {
    start();
    MPI_File file, brief;
    int in[2];
    char own[40], moved[40], log[40], text[8] = "";
    sprintf(own, "file_later.%d.data", rank);
    sprintf(moved, "file_later.%d.moved", rank);
    sprintf(log, "file_later.%d.log", rank);
    for (int i = 0; i < 3; i++) {
        FILE *made = fopen(own, "w");
        CHECK(made && fputs("made", made) >= 0 && fclose(made) == 0);
        CHECK(rename(own, moved) == 0 && !fopen(own, "r") && (made = fopen(moved, "r")));
        CHECK(fgets(text, sizeof text, made) && !strcmp(text, "made") && fclose(made) == 0);
        CHECK(rename(moved, own) == 0 && !fopen(moved, "r"));
        CHECK(MPI_File_delete(own, MPI_INFO_NULL) == MPI_SUCCESS && !fopen(own, "r"));
        CHECK(class_of(MPI_File_delete(own, MPI_INFO_NULL)) == MPI_ERR_NO_SUCH_FILE);
        int mode = MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
        CHECK(MPI_File_open(MPI_COMM_SELF, own, mode, MPI_INFO_NULL, &brief) == MPI_SUCCESS);

        mode = MPI_MODE_CREATE | MPI_MODE_RDWR;
        CHECK(MPI_File_open(MPI_COMM_WORLD, "file_later.data", mode, MPI_INFO_NULL, &file) == MPI_SUCCESS);
        MPI_File_set_size(file, 0);
        int number = 10 * i + rank;
        MPI_File_write_at(file, rank * sizeof number, &number, 1, MPI_INT, MPI_STATUS_IGNORE);
        MPI_File_sync(file);
        MPI_Barrier(MPI_COMM_WORLD);
        FILE *same = fopen("file_later.data", "r");
        CHECK(same && fread(in, sizeof(int), 2, same) == 2 && in[0] == 10 * i && in[1] == 10 * i + 1);
        fclose(same);
        beat();
        MPI_File_close(&file);
        MPI_File_close(&brief);
        CHECK(class_of(MPI_File_open(MPI_COMM_SELF, own, MPI_MODE_RDONLY, MPI_INFO_NULL, &brief)) == MPI_ERR_NO_SUCH_FILE);

        double now = MPI_Wtime();
        MPI_File_open(MPI_COMM_SELF, log, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
        MPI_File_write_at(file, i * sizeof now, &now, 1, MPI_DOUBLE, MPI_STATUS_IGNORE);
        MPI_File_close(&file);
    }
    say("last %d", in[1]);
    return done("file_later");
}
