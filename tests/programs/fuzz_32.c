// Random calls of MPI, number 32 (fuzz.h).
// stride: 7
// refuses: nonblocking collective is under way that not all ranks have started
#include "fuzz.h"

int main(void) { return fuzz(32, 240, "fuzz_32"); }
