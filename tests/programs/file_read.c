// Files open for reading, at an offset, by system calls and by stdio, and one in which the kernel tells of this process.
#include "state.h"
#include <fcntl.h>
#include <unistd.h>

int main(void) {
    start();
    char name[40], line[20];
    int number, copy, in;
    sprintf(name, "file_read.%d.data", rank);
    FILE *make = fopen(name, "w");
    for (int i = 0; i < 100; i++) fprintf(make, "%d\n", 1000 * rank + i);
    fclose(make);
    FILE *text = fopen(name, "r");
    int raw = open(name, O_RDONLY | O_CLOEXEC);
    int about = open("/proc/self/statm", O_RDONLY);
    copy = dup(raw);
    lseek(raw, 0, SEEK_SET);
    for (int i = 0; i < 6; i++) {
        CHECK(fscanf(text, "%d", &number) == 1 && number == 1000 * rank + i);
        beat();
        CHECK(read(i % 2 ? copy : raw, line, 2) == 2 && pread(about, line + 2, 4, 0) == 4);
    }
    CHECK(lseek(copy, 0, SEEK_CUR) == 12 && lseek(raw, 0, SEEK_CUR) == 12);
    CHECK(fcntl(raw, F_GETFD) == FD_CLOEXEC && fcntl(copy, F_GETFD) == 0);
    lseek(raw, 0, SEEK_SET);
    for (in = 0; read(copy, line, 1) == 1; in++) {}
    CHECK(in == (rank ? 500 : 290));
    close(copy);
    beat();
    CHECK(read(raw, line, 1) == 0);
    close(raw);
    close(about);
    fclose(text);
    say("%d bytes", in);
    return done("file_read");
}
