/* Every mapping lies in the range and behaves as the kernel's. */
#include "check.h"

static void *thread(void *p) {
    for (int i = 0; i < 500; i++) {
        size_t size = 10 + i * 997;
        char *m = malloc(size);
        CHECK(in_range(m));
        memset(m, i, size);
        free(m);
    }
    return p;
}

int main(void) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS, rw = PROT_READ | PROT_WRITE;
    int local;
    CHECK(in_range(&local) && in_range(sbrk(0)) && in_range((void *)malloc));
    char *m = mmap(0, 1 << 20, rw, flags, -1, 0);
    CHECK(in_range(m));
    memset(m, 7, 1 << 20);
    char *n = mremap(m, 1 << 20, 64 << 20, MREMAP_MAYMOVE);
    CHECK(in_range(n) && n[12345] == 7 && n[(64 << 20) - 1] == 0);
    CHECK(mremap(n, 64 << 20, 4096, 0) == n && n[0] == 7);
    CHECK(munmap(n, 4096) == 0);
    char *first = mmap(0, 4096, rw, flags, -1, 0), *second = mmap(0, 4096, rw, flags, -1, 0);
    CHECK(second == first - 4096);
    char *f = mmap(0, 3 * 4096, rw, flags, -1, 0);
    CHECK(munmap(f + 4096, 4096) == 0);
    CHECK(mmap(0, 4096, rw, flags, -1, 0) == f + 4096);
    CHECK(mmap(f, 4096, PROT_READ, flags | MAP_FIXED, -1, 0) == f);
    CHECK(mmap(f, 4096, PROT_READ, flags | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED && errno == EEXIST);
    CHECK(munmap(f, 3 * 4096) == 0);
    CHECK(in_range(mmap((void *)0x7f0000000000, 4096, PROT_READ, flags, -1, 0)));
    CHECK(mmap((void *)0x210000000000, 4096, PROT_READ, flags, -1, 0) == (void *)0x210000000000);
    CHECK(mmap(0, 0, rw, flags, -1, 0) == MAP_FAILED && errno == EINVAL);
    CHECK(mmap(0, -1, rw, flags, -1, 0) == MAP_FAILED && errno == ENOMEM);
    CHECK(mmap(0, 1UL << 45, rw, flags | MAP_NORESERVE, -1, 0) == MAP_FAILED && errno == ENOMEM);
    CHECK(munmap((void *)1, 4096) == -1 && errno == EINVAL);
    /* What is not the program's is not there for it. */
    CHECK(munmap((void *)(*(unsigned long *)0x1ffffff00000 & ~4095UL), 4096) == 0 && gate(0) == 0);
    char *b = sbrk(0);
    CHECK(sbrk(1 << 20) == b);
    b[(1 << 20) - 1] = 1;
    CHECK(sbrk(-(1 << 20)) == b + (1 << 20) && sbrk(0) == b);
    int id = shmget(IPC_PRIVATE, 8192, IPC_CREAT | 0600);
    char *s = shmat(id, 0, 0);
    CHECK(in_range(s));
    s[8191] = 1;
    CHECK(shmdt(s) == 0 && shmdt(s) == -1 && shmctl(id, IPC_RMID, 0) == 0);
    for (int i = 0; i < 200; i++) {
        char *p = malloc((size_t)i << 16);
        CHECK(in_range(p) || i == 0);
        p = realloc(p, (size_t)(i + 1) << 17);
        CHECK(in_range(p));
        memset(p, i, (size_t)i << 16);
        free(p);
    }
    pthread_t t[4];
    for (int i = 0; i < 4; i++) CHECK(pthread_create(&t[i], 0, thread, 0) == 0);
    for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
    void *lib = dlopen("libm.so.6", RTLD_NOW);
    double (*cosine)(double) = lib ? (double (*)(double))dlsym(lib, "cos") : 0;
    CHECK(cosine && in_range((void *)cosine) && cosine(0) == 1);
    return finish();
}
