/* Computation: so much work of two kinds, never a spin until a time has come, so that a faster processor takes less
 * time. Arithmetic is bound by the latency of multiplications and additions; traffic reads and writes one cache line
 * after the other of a working set, four in a step: one by one, how fast decoding is would matter, and so where in memory
 * the compiler lays the loop. Multiplication and addition are statements of their own: some compilers make one instruction
 * of both where the processor has it, and count and latency would depend on that. The rates were measured on the base. */
static double *working_set;
static double terms[4] = {1.0, 1.25, 1.5, 1.75};
static unsigned long place;

static void arithmetic(long rounds)
{
    double a = terms[0], b = terms[1], c = terms[2], d = terms[3];
    for (long i = 0; i < rounds; i++) {
        a *= 0.999;
        a += 0.001;
        b *= 0.998;
        b += 0.002;
        c *= 0.997;
        c += 0.003;
        d *= 0.996;
        d += 0.004;
    }
    terms[0] = a;
    terms[1] = b;
    terms[2] = c;
    terms[3] = d;
}

static void traffic(long lines)
{
    unsigned long at = place;
    for (long i = 0; i < lines; i += 4) {
        double *line = working_set + at;
        line[0] *= 0.999;
        line[0] += 0.001;
        line[8] *= 0.999;
        line[8] += 0.001;
        line[16] *= 0.999;
        line[16] += 0.001;
        line[24] *= 0.999;
        line[24] += 0.001;
        at += 32;
        if (at >= WORKING_SET / sizeof(double))
            at = 0;
    }
    place = at;
}

/* What may be written of data to send, and what was and has yet to be taken off, in microseconds. */
static double may_write_us, written_us;
/* Bytes of memory that the program has gone through by now: so many in a microsecond, unless they were counted. */
#define GONE_THROUGH_PER_US 5000.0
static double gone_through;
/* Nothing is computed now. */
static int messages_only;

/* What is left to do of a block. */
static double left_of(double us)
{
    us -= BLOCK_US;
    if (us <= 0.0)
        return 0.0;
    if (us > may_write_us)
        may_write_us = us;
    if (messages_only)
        return 0.0;
    double taken_off = us < written_us ? us : written_us;
    written_us -= taken_off;
    return us - taken_off;
}

static void compute(double us)
{
    gone_through += us * GONE_THROUGH_PER_US;
    us = left_of(us);
    traffic((long)(us * MIX * LINES_PER_US + 0.5));
    arithmetic((long)(us * (1.0 - MIX) * ROUNDS_PER_US + 0.5));
}

static void make_working_set(void)
{
    working_set = malloc(WORKING_SET);
    if (!working_set) {
        fprintf(stderr, "no memory for a working set of %lu bytes\n", (unsigned long)WORKING_SET);
        exit(1);
    }
    for (unsigned long i = 0; i < WORKING_SET / sizeof(double); i++)
        working_set[i] = 1.0;
}
