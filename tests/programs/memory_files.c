// Files that are mapped for writing: one with a name whose descriptor is closed, one whose name is removed, and one in memory,
// which is mapped at two places and written by calls as well.
// cut: middle
#define _GNU_SOURCE
#include "state.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BYTES = 12288 };

static char *mapped(int file) {
    CHECK(file >= 0 && ftruncate(file, BYTES - 100) == 0);
    char *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    CHECK(at != MAP_FAILED);
    return at;
}

int main(void) {
    start();
    char name[40], read_back[4] = {0};
    struct stat facts;
    snprintf(name, sizeof name, "memory_files.%d.data", rank);
    for (int i = 0; i < 3; i++) beat();
    int file = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600), removed, memory = memfd_create("pages", MFD_CLOEXEC);
    char *named = mapped(file), *unnamed, *one = mapped(memory), *other;
    close(file);
    char gone[48];
    snprintf(gone, sizeof gone, "%s.gone", name);
    removed = open(gone, O_RDWR | O_CREAT | O_TRUNC, 0600);
    unnamed = mapped(removed);
    close(removed), unlink(gone);
    other = mmap(NULL, 4096, PROT_READ, MAP_SHARED, memory, 4096);
    CHECK(other != MAP_FAILED);
    for (char i = 1; i < 4; i++) {
        named[i] = unnamed[8192 + i] = one[4096 + i] = (char)(i + rank);
        CHECK(pwrite(memory, &i, 1, 5000) == 1);
        beat();
        for (char j = 1; j <= i; j++) {
            CHECK(named[j] == j + rank && unnamed[8192 + j] == j + rank && other[j] == j + rank);
        }
        CHECK(other[5000 - 4096] == i && one[5000] == i);
        CHECK(fstat(memory, &facts) == 0 && facts.st_size == BYTES - 100);
        one[4096 + 70] = i;
        CHECK(other[70] == i && pread(memory, read_back, 1, 4096 + 70) == 1 && read_back[0] == i);
        file = open(name, O_RDONLY);
        CHECK(pread(file, read_back, 3, 1) == 3 && read_back[i - 1] == i + rank);
        CHECK(fstat(file, &facts) == 0 && facts.st_size == BYTES - 100);
        close(file);
    }
    munmap(named, BYTES), munmap(unnamed, BYTES), munmap(one, BYTES), munmap(other, 4096), close(memory);
    for (int i = 0; i < 3; i++) beat();
    say("shown");
    return done("memory_files");
}
