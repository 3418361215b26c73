// The heap: blocks small and large, freed and grown in turn with communication, the program break moved by hand.
#include "state.h"
#include <malloc.h>
#include <unistd.h>

enum { N = 64 };

int main(void) {
    start();
    int *blocks[N] = {0}, lengths[N] = {0};
    char *broken = sbrk(100000);
    CHECK(broken != (char *)-1);
    memset(broken, 42, 100000);
    unsigned seed = 7;
    for (int turn = 0; turn < 8; turn++) {
        for (int i = 0; i < N; i++) {
            CHECK(filled(blocks[i], lengths[i], i + turn - 1));
            seed = seed * 1103515245u + 12345u;
            if (seed & 1 << 20) free(blocks[i]), blocks[i] = NULL;
            lengths[i] = i == 5 ? 200000 : 1 + (int)(seed >> 16) % 5000;
            blocks[i] = realloc(blocks[i], (size_t)lengths[i] * sizeof(int));
            fill(blocks[i], lengths[i], i + turn);
        }
        beat();
        if (turn == 4) malloc_trim(0);
    }
    CHECK(broken[0] == 42 && broken[99999] == 42);
    for (int i = 0; i < N; i++) free(blocks[i]);
    void *aligned = NULL;
    CHECK(posix_memalign(&aligned, 65536, 65536) == 0 && ((size_t)aligned & 65535) == 0);
    beat();
    free(aligned);
    say("turned %u", seed);
    return done("memory_heap");
}
