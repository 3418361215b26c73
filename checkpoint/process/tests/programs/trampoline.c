/* Code on the stack: the program asks for an executable stack, and so does a library it loads later. */
#include "check.h"
static int apply(int (*f)(int), int x) { return f(x); }
int main(int argc, char **argv) {
    int add = argc + 40;
    int inner(int x) { return x + add; }
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : 0;
    CHECK(argc < 2 || library);
    CHECK(apply(inner, 1) == argc + 41);
    return finish();
}
