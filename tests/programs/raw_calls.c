// A program that is not position-independent makes system calls by its own instructions, as Go's runtime does. Memory and a
// pipe that it gets so are its own.
// flags: -no-pie -fno-pie
#include "state.h"
#include <sys/syscall.h>
#include <unistd.h>

static long call(long number, long a, long b, long c, long d, long e, long f) {
    long result;
    register long fourth __asm__("r10") = d, fifth __asm__("r8") = e, sixth __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth), "r"(sixth)
                     : "rcx", "r11", "memory");
    return result;
}

int main(void) {
    start();
    int pipe[2], in;
    // To be read and written, private, without a file.
    int *memory = (int *)call(SYS_mmap, 0, 1 << 20, 3, 0x22, -1, 0);
    CHECK((long)memory > 0 && call(SYS_pipe2, (long)pipe, 0, 0, 0, 0, 0) == 0);
    for (int i = 0; i < 4; i++) {
        memory[1000] = 10 * i + rank;
        CHECK(call(SYS_write, pipe[1], (long)&i, sizeof i, 0, 0, 0) == sizeof i);
        beat();
        CHECK(call(SYS_read, pipe[0], (long)&in, sizeof in, 0, 0, 0) == sizeof in && in == i && memory[1000] == 10 * i + rank);
    }
    CHECK(call(SYS_munmap, (long)memory, 1 << 20, 0, 0, 0, 0) == 0);
    beat();
    say("read %d", in);
    return done("raw_calls");
}
