// Random calls of MPI, number 25 (fuzz.h).
// stride: 7
// refuses: nonblocking collective is under way that not all ranks have started
#include "fuzz.h"

int main(void) { return fuzz(25, 240, "fuzz_25"); }
