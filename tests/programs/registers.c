// What a call must keep: registers that the caller counts on, and the red zone's neighbourhood.
// flags: -O3
#include "state.h"

int main(void) {
    start();
    long a = rank + 1, b = rank + 2, c = rank + 3, d = rank + 4, e = rank + 5, f = rank + 6;
    double x = rank + 0.5, y = x * 2, z = y * 2;
    for (int i = 0; i < 10; i++) {
        beat();
        a += b, b += c, c += d, d += e, e += f, f += a % 1000;
        x += y, y += z, z += x / 4096;
    }
    long expected[6] = {rank + 1, rank + 2, rank + 3, rank + 4, rank + 5, rank + 6};
    for (int i = 0; i < 10; i++) {
        for (int k = 0; k < 5; k++) expected[k] += expected[k + 1];
        expected[5] += expected[0] % 1000;
    }
    CHECK(a == expected[0] && f == expected[5]);
    say("%ld %ld %.6f", a, f, x);
    return done("registers");
}
