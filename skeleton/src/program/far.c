/* Computation that was counted: lines from memory, as many as the program had, and the rest of its time in the shares of
 * the two other kinds that have its instructions. Lines come one after the other from a working set that no cache holds. */
static double *far_set;
static unsigned long far_place;
static double far_sum, far_owed;

static void far_lines(long lines)
{
    unsigned long at = far_place;
    double sum = far_sum;
    for (long i = 0; i < lines; i++) {
        sum += far_set[at];
        at += 8;
        if (at >= FAR_SET / sizeof(double))
            at = 0;
    }
    far_place = at;
    far_sum = sum;
}

/* Of the time, this share goes into lines from memory and this into the small working set; the rest is arithmetic. Blocks
 * that are too short for a line owe it to later ones. */
static void compute_of(double us, double far, double near)
{
    gone_through += us * far * FAR_LINES_PER_US * 64.0;
    us = left_of(us);
    double lines = us * far * FAR_LINES_PER_US + far_owed;
    far_lines((long)lines);
    far_owed = lines - (double)(long)lines;
    traffic((long)(us * near * LINES_PER_US + 0.5));
    arithmetic((long)(us * (1.0 - far - near) * ROUNDS_PER_US + 0.5));
}

static void make_far_set(void)
{
    far_set = malloc(FAR_SET);
    if (!far_set) {
        fprintf(stderr, "no memory for a working set of %lu bytes\n", (unsigned long)FAR_SET);
        exit(1);
    }
    for (unsigned long i = 0; i < FAR_SET / sizeof(double); i += 8)
        far_set[i] = 1.0;
}
