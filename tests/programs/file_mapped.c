// A file that is mapped for reading, shared, and written by calls all the while: what is mapped must follow it.
// cut: middle
#include "state.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

int main(void) {
    start();
    char name[40];
    snprintf(name, sizeof name, "file_mapped.%d.data", rank);
    for (int i = 0; i < 3; i++) beat();
    int file = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(file >= 0 && ftruncate(file, 8192) == 0);
    char *mapped = mmap(NULL, 8192, PROT_READ, MAP_SHARED, file, 0);
    CHECK(mapped != MAP_FAILED);
    for (char i = 1; i < 4; i++) {
        CHECK(pwrite(file, &i, 1, 4096 + i) == 1 && mapped[4096 + i] == i);
        beat();
        for (char j = 1; j <= i; j++) CHECK(mapped[4096 + j] == j);
    }
    munmap(mapped, 8192);
    close(file);
    for (int i = 0; i < 3; i++) beat();
    say("followed");
    return done("file_mapped");
}
