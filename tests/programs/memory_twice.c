// Shared memory that is mapped at two places: what is written at one is read at the other.
// cut: middle
#define _GNU_SOURCE
#include "state.h"
#include <sys/mman.h>

int main(void) {
    start();
    for (int i = 0; i < 3; i++) beat();
    char *one = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char *other = mremap(one, 0, 8192, MREMAP_MAYMOVE);
    CHECK(one != MAP_FAILED && other != MAP_FAILED && one != other);
    for (char i = 1; i < 4; i++) {
        one[i] = i, other[4096 + i] = i;
        beat();
        CHECK(other[i] == i && one[4096 + i] == i);
        one[100] = i;
        CHECK(other[100] == i);
    }
    munmap(one, 8192), munmap(other, 8192);
    for (int i = 0; i < 3; i++) beat();
    say("both");
    return done("memory_twice");
}
