// A deep stack: cuts far down a recursion, large local arrays, and a jump back out of it.
#include "state.h"
#include <alloca.h>
#include <setjmp.h>

static jmp_buf back;

static int descend(int depth) {
    volatile int local[2000];
    for (int i = 0; i < 2000; i++) local[i] = depth * i;
    if (depth == 100) {
        int *large = alloca(2000000);
        fill(large, 500000, rank);
        for (int i = 0; i < 4; i++) beat();
        CHECK(filled(large, 500000, rank));
        return 1;
    }
    int n = descend(depth + 1) + 1;
    for (int i = 0; i < 2000; i += 37) CHECK(local[i] == depth * i);
    if (depth == 50) beat();
    if (depth == 20) longjmp(back, n);
    return n;
}

int main(void) {
    start();
    volatile int before_jump = 5 + rank;
    int n = setjmp(back);
    if (n == 0) {
        beat();
        descend(0);
        CHECK(0);
    }
    CHECK(n == 81 && before_jump == 5 + rank);
    for (int i = 0; i < 2; i++) beat();
    say("from %d frames", n);
    return done("memory_stack");
}
