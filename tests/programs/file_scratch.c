// Scratch files: written, read again in each step while they stay open, or while they are open for reading only, and removed
// at the end.
#include "state.h"
#include <fcntl.h>
#include <unistd.h>

int main(void) {
    start();
    char names[2][40], word[8], found[8];
    for (int i = 0; i < 2; i++) sprintf(names[i], "file_scratch.%d.%d.data", rank, i), unlink(names[i]);
    int both = open(names[0], O_RDWR | O_CREAT | O_TRUNC, 0600);
    FILE *text = fopen(names[1], "w");
    for (int i = 0; i < 8; i++) CHECK(fprintf(text, "line %d\n", i) == 7);
    fclose(text);
    int in = open(names[1], O_RDONLY);
    for (int i = 0; i < 8; i++) {
        sprintf(word, "step %d\n", i);
        CHECK(pwrite(both, word, 7, 7 * i) == 7);
        beat();
        for (int old = 0; old <= i; old++) {
            memset(found, 0, sizeof found);
            sprintf(word, "step %d\n", old);
            CHECK(pread(both, found, 7, 7 * old) == 7 && !strcmp(found, word));
        }
        memset(found, 0, sizeof found);
        sprintf(word, "line %d\n", i);
        CHECK(read(in, found, 7) == 7 && !strcmp(found, word));
    }
    close(both);
    close(in);
    for (int i = 0; i < 2; i++) CHECK(unlink(names[i]) == 0);
    beat();
    return done("file_scratch");
}
