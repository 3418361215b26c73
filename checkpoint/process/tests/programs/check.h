/* What the test programs share: a check that counts, a call of the gate, and the ranges that memory must lie in. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int failures;
#define CHECK(x) \
    do { \
        if (!(x)) { printf("FAILED line %d: %s (errno %d)\n", __LINE__, #x, errno); failures++; } \
    } while (0)

long gate(long index);
__asm__(".text\n.globl gate\ngate: mov %rdi, %r10; movabs $0x1ffffff00000, %rax; jmp *(%rax)\n");

long gate_with(long index, long (*f)(long), long value);
__asm__(".globl gate_with\ngate_with: mov %rdi, %r10; mov %rsi, %rdi; mov %rdx, %rsi; movabs $0x1ffffff00000, %rax; jmp *(%rax)\n");

static int in_range(const void *p) { return (unsigned long)p >= 0x200000000000 && (unsigned long)p < 0x280000000000; }
static int finish(void) {
    puts(failures ? "failed" : "passed");
    return failures != 0;
}
