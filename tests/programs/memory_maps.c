// Memory mapped in many ways: protected, with holes, grown, reserved, of a file, huge if the machine likes.
#define _GNU_SOURCE
#include "state.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, MB = 1 << 20 };

static char *map(size_t bytes, int protection, int flags) {
    char *at = mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    CHECK(at != MAP_FAILED);
    return at;
}

int main(void) {
    start();
    int both = PROT_READ | PROT_WRITE;
    char *plain = map(MB, both, 0), *holes = map(MB, both, 0), *room = map((size_t)1 << 30, both, MAP_NORESERVE);
    // Neighbours, of which the lower one is asked to be as long as it is.
    char *above = map(16 * MB, both, 0), *below = map(16 * MB, both, 0);
    CHECK(mremap(below, 16 * MB, 16 * MB, MREMAP_MAYMOVE) == below);
    above[0] = below[0] = 4;
    char *none = map(MB, PROT_NONE, 0), *grown = map(PAGE, both, 0), *large = map(8 * MB, both, 0);
    memset(plain, 1 + rank, MB);
    mprotect(plain + PAGE, PAGE, PROT_READ);
    memset(holes, 2, MB);
    munmap(holes + 16 * PAGE, 16 * PAGE);
    room[700 * MB] = 3;
    strcpy(grown, "grown");
    madvise(large, 8 * MB, MADV_HUGEPAGE);
    for (int i = 0; i < 8; i++) large[i * MB + 5] = (char)i;
    int file = open("/etc/passwd", O_RDONLY);
    char *text = mmap(NULL, PAGE, both, MAP_PRIVATE, file, 0), first = text[0];
    close(file);
    text[1] = '!';
    for (int i = 0; i < 4; i++) {
        beat();
        CHECK(plain[0] == 1 + rank && plain[PAGE + 1] == 1 + rank && plain[MB - 1] == 1 + rank);
        CHECK(holes[0] == 2 && holes[32 * PAGE] == 2 && room[700 * MB] == 3 && room[300 * MB] == 0);
        CHECK(!strcmp(grown, "grown") && text[0] == first && text[1] == '!' && large[7 * MB + 5] == 7 && large[6] == 0);
        CHECK(above[0] == 4 && below[0] == 4 && below[MB] == 0);
        grown = mremap(grown, (size_t)PAGE << i, (size_t)PAGE << (i + 1), MREMAP_MAYMOVE);
        CHECK(grown != MAP_FAILED && grown[((size_t)PAGE << (i + 1)) - 1] == 0);
    }
    CHECK(mprotect(none, PAGE, both) == 0 && none[0] == 0);
    beat();
    CHECK(munmap(plain, MB) == 0 && munmap(room, (size_t)1 << 30) == 0 && munmap(text, PAGE) == 0);
    beat();
    say("mapped");
    return done("memory_maps");
}
