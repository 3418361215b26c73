/* Time in skeletons: computation that spreads, parts, and the report at the end, by sections as in messages.c. */
//@ turns
/* Of each computation that spreads, which of its times is next. Each round begins with the first. */
static int turn[SPREADS];

//@ spread
/* Computation that takes now longer, now shorter: eight times, one after the other. All ranks take the same at the same
 * turn, as what makes a block longer mostly is where the program stands. */
static void compute_spread(const double us[8], int which)
{
    compute(us[turn[which]]);
    turn[which] = (turn[which] + 1) % 8;
}

//@ spread_of
/* The same of computation that was counted. */
static void compute_spread_of(const double us[8], int which, double far, double near)
{
    compute_of(us[turn[which]], far, near);
    turn[which] = (turn[which] + 1) % 8;
}

//@ parts
/* Time by parts of the program: as it passes, and times what it stands for. */
static double passed[PARTS], stands_for[PARTS];
static double since, weight_now = 1.0, warm_s, prepare_s;
static int part_now;

/* From now on, time is that of this part, and each second stands for so many of the program. */
static void part(int next, double weight)
{
    double now = MPI_Wtime();
    passed[part_now] += now - since;
    stands_for[part_now] += (now - since) * weight_now;
    since = now;
    part_now = next;
    weight_now = weight;
}

//@ start_over
/* Forgets what has passed: it was a round of messages alone. */
static void start_over(void)
{
    for (int i = 0; i < PARTS; i++)
        warm_s += passed[i];
    memset(passed, 0, sizeof passed);
    memset(stands_for, 0, sizeof stands_for);
    written_us = 0.0;
    messages_only = 0;
}

//@ report
/* One line of JSON by rank 0, with the times of one round: to the file that is named, else to standard output. */
static int report(const char *path, long rounds)
{
    static double all[RANKS][2 * PARTS];
    double mine[2 * PARTS];
    for (int i = 0; i < PARTS; i++) {
        mine[2 * i] = passed[i] / (double)rounds;
        mine[2 * i + 1] = stands_for[i] / (double)rounds;
    }
    MPI_Gather(mine, 2 * PARTS, MPI_DOUBLE, all, 2 * PARTS, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (rank != 0)
        return 0;
    FILE *out = path ? fopen(path, "w") : stdout;
    if (!out) {
        perror(path);
        return 1;
    }
    char mpi[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    MPI_Get_library_version(mpi, &length);
    for (char *c = mpi; *c; c++) {
        if (*c == '\n')
            *c = '\0';
        else if (*c < ' ' || *c > '~' || *c == '"' || *c == '\\')
            *c = ' ';
        if (!*c)
            break;
    }
    double run = 0.0, whole = -1.0;
    int slowest = 0;
    for (int r = 0; r < RANKS; r++) {
        double time = 0.0, sum = 0.0;
        for (int i = 0; i < PARTS; i++) {
            time += all[r][2 * i];
            sum += all[r][2 * i + 1];
        }
        run = time > run ? time : run;
        if (sum > whole) {
            whole = sum;
            slowest = r;
        }
    }
    fprintf(out, "{\"skeleton\":1,\"mpi\":\"%s\",\"ranks\":%d,\"rounds\":%ld,", mpi, RANKS, rounds);
    fprintf(out, "\"prepare_s\":%.9f,\"warm_s\":%.9f,", prepare_s, warm_s);
    fprintf(out, "\"run_s\":%.9f,\"stands_for_s\":%.9f,", run, whole);
    fprintf(out, "\"slowest\":%d,\"parts\":[", slowest);
    for (int i = 0; i < PARTS; i++) {
        double low = -1.0, high = 0.0, sum = 0.0, stands = all[slowest][2 * i + 1];
        int taking_part = 0;
        for (int r = 0; r < RANKS; r++) {
            double time = all[r][2 * i];
            if (time <= 0.0)
                continue;
            low = low < 0.0 || time < low ? time : low;
            high = time > high ? time : high;
            sum += time;
            taking_part++;
        }
        fprintf(out, "%s{\"part\":%d,\"ranks\":%d,\"min_s\":%.9f,\"mean_s\":%.9f,\"max_s\":%.9f,\"stands_for_s\":%.9f}",
                i ? "," : "", i, taking_part, low < 0.0 ? 0.0 : low, taking_part ? sum / taking_part : 0.0, high, stands);
    }
    fprintf(out, "]}\n");
    return (out == stdout ? fflush(out) : fclose(out)) != 0;
}
