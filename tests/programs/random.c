// Random numbers: their sequences go on where they were.
#include "state.h"

int main(void) {
    start();
    char state[64];
    unsigned short three[3] = {1, 2, 3};
    srand(17u + (unsigned)rank);
    srand48(5);
    initstate(99, state, sizeof state);
    long sum = 0;
    for (int i = 0; i < 8; i++) {
        sum += rand() % 1000 + random() % 1000 + (long)(drand48() * 1000) + nrand48(three) % 1000;
        beat();
    }
    srand(17u + (unsigned)rank);
    CHECK(sum > 0);
    say("sum %ld", sum);
    return done("random");
}
