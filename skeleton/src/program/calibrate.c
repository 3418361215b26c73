
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

#define TIMES 401
static double median(double *all)
{
    qsort(all, TIMES, sizeof *all, by_size);
    return all[TIMES / 2];
}

/* Rounds and lines in a microsecond, and what a block takes beyond what it should, from blocks of 3 us one by one; then
 * lines from memory, and the instructions of a round and of either line, if they are asked for. All of it over a second,
 * as processors are faster at one moment than at another. The two kernels are timed in turns of tens of microseconds, as
 * a skeleton's blocks run them: after half a millisecond of arithmetic the next hundred microseconds of traffic are up to
 * a third slower. */
int main(void)
{
    double a[TIMES], t[TIMES], over[TIMES];
    make_working_set();
    traffic(2 * (long)(WORKING_SET / 64));
    arithmetic(2000000);
    for (int i = 0; i < TIMES; i++) {
        double of_arithmetic = 0.0, of_traffic = 0.0;
        for (int k = 0; k < 10; k++) {
            double before = now();
            arithmetic(30000);
            double between = now();
            traffic(60000);
            of_traffic += now() - between;
            of_arithmetic += between - before;
        }
        a[i] = 300000 / of_arithmetic;
        t[i] = 600000 / of_traffic;
    }
    rounds_per_us = median(a);
    lines_per_us = median(t);
    for (int i = 0; i < TIMES; i++) {
        double before = now();
        for (int k = 0; k < 300; k++)
            compute(3.0);
        over[i] = (now() - before) / 300 - 3.0;
    }
    printf("%.6f %.6f %.6f\n", rounds_per_us, lines_per_us, median(over));
#ifdef FAR_SET
    make_far_set();
    for (int i = 0; i < TIMES; i++) {
        double before = now();
        far_lines(100000);
        t[i] = 100000 / (now() - before);
    }
    printf("%.6f\n", median(t));
    printf("%.6f %.6f %.6f\n", instructions_each(arithmetic, 300000), instructions_each(traffic, 300000),
           instructions_each(far_lines, 300000));
#endif
    return terms[0] > 2.0;
}
