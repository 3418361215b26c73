/* Which vector instructions the C library's functions for memory and text use, as resolved in this process. */
#include "check.h"
#include <strings.h>
#include <wchar.h>

/* The widest vector prefix among the first bytes of a function: EVEX (62), VEX (c4, c5), else none. */
static const char *width(const unsigned char *code) {
    const char *found = "sse";
    for (int i = 0; i < 160; i++) {
        if (code[i] == 0x62 && (code[i + 1] & 0xc) == 0 && (code[i + 2] & 4)) return "avx512";
        if (code[i] == 0xc5 && (code[i + 1] == 0xf8 || code[i + 1] == 0xf9 || code[i + 1] == 0xfd || code[i + 1] == 0xfe))
            found = "avx";
    }
    return found;
}

int main(void) {
    const char *names[] = {"memcpy", "memmove", "memset", "memcmp", "memchr", "strlen", "strchr", "strcmp", "strcpy"};
    void *libc = dlopen("libc.so.6", RTLD_NOW);
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) printf("%s %s\n", names[i], width(dlsym(libc, names[i])));
    return 0;
}
