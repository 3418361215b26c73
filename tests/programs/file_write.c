// Files open for writing, plain, appending and half in the buffer of stdio.
#include "state.h"
#include <fcntl.h>
#include <unistd.h>

int main(void) {
    start();
    char names[3][40], found[64], expected[64] = "";
    for (int i = 0; i < 3; i++) sprintf(names[i], "file_write.%d.%d.data", rank, i), unlink(names[i]);
    int plain = open(names[0], O_RDWR | O_CREAT | O_TRUNC, 0600), end = open(names[1], O_WRONLY | O_CREAT | O_APPEND, 0600);
    FILE *text = fopen(names[2], "w");
    for (int i = 0; i < 8; i++) {
        char word[4] = {'a', (char)('0' + i), ' ', 0};
        CHECK(write(plain, word, 3) == 3 && write(end, word, 3) == 3 && fputs(word, text) >= 0);
        strcat(expected, word);
        beat();
    }
    CHECK(lseek(plain, 0, SEEK_CUR) == 24 && lseek(plain, 0, SEEK_END) == 24);
    close(plain);
    close(end);
    fclose(text);
    for (int i = 0; i < 3; i++) {
        memset(found, 0, sizeof found);
        int in = open(names[i], O_RDONLY);
        CHECK(read(in, found, sizeof found) == 24 && !strcmp(found, expected));
        close(in);
    }
    beat();
    say("%s", found);
    return done("file_write");
}
