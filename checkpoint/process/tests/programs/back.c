/* Saves itself with five threads in different places, open files and signals, changes everything, and goes back. */
#include "check.h"
static __thread int mine = 3;
static volatile int stop, counters[2], slept, signals, waiting;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void handler(int signal) { signals++; }
static void *spin(void *p) {
    long i = (long)p;
    double one = sin(i), two = cos(i);
    mine = 10 + i;
    while (!stop) {
        counters[i]++;
        double sum = one * one + two * two;
        if (mine != 10 + i || fabs(sum - 1) > 1e-12) abort();
    }
    return (void *)(long)mine;
}
static void *sleeper(void *p) {
    mine = 20;
    while (!stop) {
        struct timespec t = {0, 10000000};
        CHECK(nanosleep(&t, 0) == 0);
        CHECK(poll(0, 0, 5) == 0);
        slept++;
    }
    return (void *)(long)mine;
}
/* Waits for a long time by a call of its own, which a stop must not end. */
static void *patient(void *p) {
    struct timespec t = {600, 0};
    mine = 40;
    pthread_setname_np(pthread_self(), "patient");
    __atomic_fetch_add(&waiting, 1, __ATOMIC_SEQ_CST);
    while (!stop) CHECK(syscall(SYS_futex, &stop, FUTEX_WAIT, 0, &t, 0, 0) == 0 || errno == EAGAIN);
    return (void *)(long)mine;
}
static void *waiter(void *p) {
    mine = 30;
    pthread_mutex_lock(&lock);
    __atomic_fetch_add(&waiting, 1, __ATOMIC_SEQ_CST);
    while (!stop) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return (void *)(long)mine;
}
/* By clock, getrusage, times, and of this thread alone, in milliseconds. */
static void processor_time(long *used) {
    struct rusage usage;
    struct tms ticks;
    struct timespec own;
    times(&ticks), getrusage(RUSAGE_SELF, &usage), clock_gettime(CLOCK_THREAD_CPUTIME_ID, &own);
    used[0] = clock() / 1000;
    used[1] = (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
    used[2] = (ticks.tms_utime + ticks.tms_stime) * 10;
    used[3] = own.tv_sec * 1000 + own.tv_nsec / 1000000;
}
static void content(const char *name, char *into, int size) {
    int file = open(name, O_RDONLY);
    ssize_t got = file < 0 ? 0 : read(file, into, size - 1);
    into[got < 0 ? 0 : got] = 0;
    if (file >= 0) close(file);
}

int main(int argc, char **argv) {
    char name[600], later[600], moved[600], text[64], a[10], b[10], c[10];
    snprintf(name, sizeof name, "%s/out", argv[1]);
    snprintf(later, sizeof later, "%s/later", argv[1]);
    snprintf(moved, sizeof moved, "%s/moved", argv[1]);
    pthread_t t[5], extra;
    pthread_create(&t[0], 0, spin, (void *)0);
    pthread_create(&t[1], 0, spin, (void *)1);
    pthread_create(&t[2], 0, sleeper, 0);
    pthread_create(&t[3], 0, waiter, 0);
    pthread_create(&t[4], 0, patient, 0);
    while (!slept || waiting < 2) usleep(1000);
    signal(SIGUSR1, handler);
    signal(SIGPIPE, SIG_IGN);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, 0);
    static char stack[32768];
    stack_t s = {stack, 0, sizeof stack};
    sigaltstack(&s, 0);
    FILE *out = fopen(name, "w");
    fprintf(out, "before\n");
    fflush(out);
    FILE *old = fopen(later, "w");
    fprintf(old, "original");
    fclose(old);
    int in = open("/etc/passwd", O_RDONLY);
    CHECK(read(in, a, 10) == 10 && read(in, b, 10) == 10);
    lseek(in, 10, SEEK_SET);
    int copy = dup(in), error = dup(2);
    FILE *unnamed = tmpfile();
    fputs("unnamed", unnamed);
    fflush(unnamed);
    char *heap = malloc(20 << 20);
    memset(heap, 5, 20 << 20);
    mine = 99;
    double x = 0.1 + argc;
    pthread_setname_np(pthread_self(), "saved");
    struct stat numbers[2], st;
    CHECK(fstat(fileno(out), &numbers[0]) == 0 && fstat(in, &numbers[1]) == 0);
    for (volatile long i = 0; i < 30000000; i++);
    long used[4], again[4];
    processor_time(used);

    long round = gate(1);
    CHECK(round < 1000 && mine == 99 && x == 0.1 + argc);
    processor_time(again);
    for (int i = 0; i < 4; i++) CHECK(again[i] >= used[i] && again[i] < used[i] + 30000);
    pthread_getname_np(pthread_self(), text, sizeof text);
    CHECK(!strcmp(text, "saved"));
    pthread_getname_np(t[4], text, sizeof text);
    CHECK(!strcmp(text, "patient"));
    pthread_setname_np(pthread_self(), "other");
    CHECK(fstat(fileno(out), &st) == 0 && st.st_dev == numbers[0].st_dev && st.st_ino == numbers[0].st_ino);
    CHECK(stat(name, &st) == 0 && st.st_dev == numbers[0].st_dev && st.st_ino == numbers[0].st_ino);
    CHECK(syscall(SYS_fstat, fileno(out), &st) == 0 && st.st_ino == numbers[0].st_ino);
    struct statx stx;
    CHECK(statx(AT_FDCWD, name, 0, STATX_INO, &stx) == 0 && stx.stx_ino == numbers[0].st_ino);
    CHECK(lstat("/etc/passwd", &st) == 0 && st.st_dev == numbers[1].st_dev && st.st_ino == numbers[1].st_ino);
    for (long i = 0; i < 20 << 20; i += 4096)
        if (heap[i] != 5) {
            CHECK(!"the heap is as it was");
            break;
        }
    memset(heap, 6, 20 << 20);
    mine = 77;
    CHECK(read(copy, c, 10) == 10 && !memcmp(b, c, 10) && lseek(in, 0, SEEK_CUR) == 20 && write(error, "", 0) == 0);
    rewind(unnamed);
    CHECK(fgets(text, sizeof text, unnamed) && !strcmp(text, "unnamed"));
    fprintf(out, "after %4ld\n", round);
    fflush(out);
    CHECK(fstat(fileno(out), &st) == 0 && st.st_size == 7 + 11);
    if (round > 0) {
        /* What is written now goes to copies, and is read from them. */
        FILE *f = fopen(later, "a");
        CHECK(f && fputs("+", f) >= 0 && fclose(f) == 0);
        content(later, text, sizeof text);
        CHECK(!strncmp(text, "original+", 9));
        CHECK(rename(later, moved) == 0);
        content(moved, text, sizeof text);
        CHECK(!strncmp(text, "original+", 9));
        CHECK(open(later, O_RDONLY) == -1 && errno == ENOENT && unlink(moved) == 0 && unlink(moved) == -1);
        f = fopen(later, "w");
        CHECK(f && fputs("original", f) >= 0 && fclose(f) == 0);
    }
    int c0 = counters[0], c1 = counters[1], s0 = slept;
    for (int i = 0; i < 1000 && (counters[0] == c0 || counters[1] == c1 || slept == s0); i++) usleep(1000);
    CHECK(counters[0] > c0 && counters[1] > c1 && slept > s0);
    int had = signals;
    raise(SIGUSR1);
    CHECK(signals == had + 1);
    struct sigaction now;
    CHECK(sigaction(SIGPIPE, 0, &now) == 0 && now.sa_handler == SIG_IGN);
    pthread_sigmask(SIG_BLOCK, 0, &set);
    CHECK(sigismember(&set, SIGUSR2) && !sigismember(&set, SIGUSR1));
    CHECK(sigaltstack(0, &s) == 0 && s.ss_sp == stack && s.ss_size == sizeof stack);
    memset(malloc(20 << 20), 1, 20 << 20);
    pthread_create(&extra, 0, sleeper, 0);
    if (failures) return finish();

    gate(2);
    pthread_mutex_lock(&lock);
    stop = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    syscall(SYS_futex, &stop, FUTEX_WAKE, 1, 0, 0, 0);
    void *v;
    long want[] = {10, 11, 20, 30, 40};
    for (int i = 0; i < 5; i++) CHECK(pthread_join(t[i], &v) == 0 && (long)v == want[i]);
    pthread_join(extra, &v);
    fclose(out);
    printf("%ld\n", round);
    return finish();
}
