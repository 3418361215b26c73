// A program at fixed addresses below 4 GB: its data, its code and its break are kept too.
// flags: -no-pie -fno-pie
#include "state.h"
#include <unistd.h>

static int data[3] = {1, 2, 3}, zero[100000];
static const char *const words[2] = {"low", "addresses"};
static int twice(int n) { return 2 * n; }
static int (*volatile call)(int) = twice;

int main(void) {
    start();
    CHECK((size_t)data < 1ul << 32 && (size_t)&main < 1ul << 32);
    char *broken = sbrk(50000);
    memset(broken, 5, 50000);
    for (int i = 0; i < 6; i++) {
        data[1] += i, zero[99999] += i;
        beat();
        CHECK(call(21) == 42 && broken[49999] == 5);
    }
    CHECK(data[1] == 17 && zero[99999] == 15 && !strcmp(words[1], "addresses"));
    beat();
    say("%s %d", words[0], data[1]);
    return done("non_pie");
}
