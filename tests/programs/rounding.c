// The modes of floating-point arithmetic, which MPI leaves alone: rounding, flags, flush to zero.
// flags: -O1 -frounding-math -lm
#include "state.h"
#include <fenv.h>
#include <xmmintrin.h>

static volatile double one = 1.0, three = 3.0;
static volatile long double lone = 1.0L, lthree = 3.0L;
static volatile float tiny = 1e-38f;

int main(void) {
    start();
    double up = 0, down = 0;
    int modes[4] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO, FE_TONEAREST};
    for (int i = 0; i < 8; i++) {
        fesetround(modes[i % 4]);
        long double was = lone / lthree;
        beat();
        CHECK(fegetround() == modes[i % 4] && lone / lthree == was);
        if (i % 4 == 0) up = one / three;
        if (i % 4 == 1) down = one / three;
    }
    CHECK(up > down);
    feraiseexcept(FE_OVERFLOW);
    for (int i = 0; i < 3; i++) beat();
    CHECK(fetestexcept(FE_OVERFLOW));
    _mm_setcsr(_mm_getcsr() | 0x8040);
    for (int i = 0; i < 3; i++) beat();
    CHECK((_mm_getcsr() & 0x8040) == 0x8040 && tiny / 10.0f == 0.0f);
    _mm_setcsr(_mm_getcsr() & ~0x8040u);
    feclearexcept(FE_ALL_EXCEPT);
    beat();
    CHECK(tiny / 10.0f > 0.0f);
    say("%.17g", up - down);
    return done("rounding");
}
