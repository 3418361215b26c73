// Memory mapped as shared, of no file.
#include "state.h"
#include <sys/mman.h>

int main(void) {
    start();
    for (int i = 0; i < 3; i++) beat();
    int *shared = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    fill(shared, 2048, rank);
    for (int i = 0; i < 3; i++) beat();
    CHECK(filled(shared, 2048, rank));
    munmap(shared, 8192);
    for (int i = 0; i < 2; i++) beat();
    say("kept");
    return done("memory_shared");
}
