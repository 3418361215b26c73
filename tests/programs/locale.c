// The locale, and stdio with buffers partly filled and characters pushed back.
#include "state.h"
#include <locale.h>
#include <wchar.h>

int main(void) {
    start();
    char name[40], buffer[64], *line = NULL;
    size_t room = 0;
    CHECK(setlocale(LC_ALL, "C.UTF-8"));
    sprintf(name, "locale.%d.data", rank);
    FILE *file = fopen(name, "w+");
    setvbuf(file, buffer, _IOFBF, sizeof buffer);
    for (int i = 0; i < 5; i++) {
        fprintf(file, "%d: caf\u00e9 %ls\n", i, L"\u03c0");
        beat();
    }
    CHECK(!strcmp(setlocale(LC_CTYPE, NULL), "C.UTF-8") && MB_CUR_MAX > 1);
    rewind(file);
    for (int i = 0; i < 5; i++) {
        int c = fgetc(file);
        CHECK(c == '0' + i);
        ungetc('x', file);
        beat();
        CHECK(getline(&line, &room, file) > 0 && !strcmp(line, "x: caf\u00e9 \u03c0\n"));
    }
    CHECK(fgetc(file) == EOF && feof(file));
    fclose(file);
    free(line);
    beat();
    say("five lines");
    return done("locale");
}
