//@ buffers
/* Synthetic data: each request has its own, then calls that block, then sends that nobody waits for. */
static char *outgoing[SLOTS + 2], *incoming[SLOTS + 1];

static char *buffer(unsigned long bytes)
{
    char *data = malloc(bytes);
    if (!data) {
        fprintf(stderr, "no memory for a buffer of %lu bytes\n", bytes);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return memset(data, 0, bytes);
}

//@ ready
/* Data to send. A program has computed it just before, so that it lies in the sender's cache: its lines are written
 * anew, as far as the last computation had time for it. The next computation is shorter by what that took. */
static char *ready(int which, long bytes)
{
    char *data = outgoing[which];
    long lines = bytes / 64, most = (long)(may_write_us * LINES_PER_US);
    if (lines > most)
        lines = most;
    for (long i = 0; i < lines; i++)
        data[64 * i] = 0;
    may_write_us -= (double)lines / LINES_PER_US;
    written_us += (double)lines / LINES_PER_US;
    return data;
}

//@ requests
static MPI_Request request[SLOTS];
static MPI_Status status[SLOTS];

/* Waits for the requests in these slots. */
static void wait_for(int first, int last)
{
    MPI_Waitall(last - first + 1, request + first, status + first);
}

//@ free_slot
/* A slot that is still taken is waited for. What its next request sends is made ready. */
static MPI_Request *slot(int which, long sent)
{
    MPI_Wait(request + which, MPI_STATUS_IGNORE);
    ready(which, sent);
    return request + which;
}

//@ oneself
/* A call without a partner: what it would move goes to oneself. */
static void with_oneself(int bytes)
{
    MPI_Sendrecv(outgoing[SLOTS], bytes, MPI_BYTE, 0, 0, incoming[SLOTS], bytes, MPI_BYTE, 0, 0, MPI_COMM_SELF,
                 MPI_STATUS_IGNORE);
}

//@ send_to
static void send_to(const int *direction, int tag, int bytes)
{
    if (ALONE(direction))
        with_oneself(bytes);
    else
        MPI_Send(ready(SLOTS, bytes), bytes, MPI_BYTE, direction[rank], tag, MPI_COMM_WORLD);
}

//@ ssend_to
static void ssend_to(const int *direction, int tag, int bytes)
{
    if (ALONE(direction))
        with_oneself(bytes);
    else
        MPI_Ssend(ready(SLOTS, bytes), bytes, MPI_BYTE, direction[rank], tag, MPI_COMM_WORLD);
}

//@ receive_from
static void receive_from(const int *direction, int tag, int bytes)
{
    if (ALONE(direction))
        with_oneself(bytes);
    else
        MPI_Recv(incoming[SLOTS], bytes, MPI_BYTE, direction[rank], tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

//@ start_send
static void start_send(int which, const int *direction, int tag, int bytes)
{
    MPI_Request *free_slot = slot(which, bytes);
    if (ALONE(direction))
        with_oneself(bytes);
    else
        MPI_Isend(outgoing[which], bytes, MPI_BYTE, direction[rank], tag, MPI_COMM_WORLD, free_slot);
}

//@ start_ssend
static void start_ssend(int which, const int *direction, int tag, int bytes)
{
    MPI_Request *free_slot = slot(which, bytes);
    if (ALONE(direction))
        with_oneself(bytes);
    else
        MPI_Issend(outgoing[which], bytes, MPI_BYTE, direction[rank], tag, MPI_COMM_WORLD, free_slot);
}

//@ start_receive
static void start_receive(int which, const int *direction, int tag, int bytes)
{
    MPI_Request *free_slot = slot(which, 0);
    if (ALONE(direction))
        with_oneself(bytes);
    else
        MPI_Irecv(incoming[which], bytes, MPI_BYTE, direction[rank], tag, MPI_COMM_WORLD, free_slot);
}

//@ exchange
static void exchange(const int *to, int send_tag, int sent, const int *from, int receive_tag, int received)
{
    if (ALONE(to))
        with_oneself(sent);
    if (ALONE(from))
        with_oneself(received);
    MPI_Sendrecv(ready(SLOTS, sent), sent, MPI_BYTE, ALONE(to) ? MPI_PROC_NULL : to[rank], send_tag, incoming[SLOTS],
                 received, MPI_BYTE, ALONE(from) ? MPI_PROC_NULL : from[rank], receive_tag, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}

//@ detached
/* Sends that may not wait for their receive: the program relied on buffers, or said so (MPI_Bsend). They share their
 * data, which is written only while none of them is open. */
static MPI_Request *detached;
static int detached_open, detached_room;

static void send_detached(const int *direction, int tag, int bytes)
{
    if (ALONE(direction)) {
        with_oneself(bytes);
        return;
    }
    int left = 0;
    for (int i = 0; i < detached_open; i++) {
        int done;
        MPI_Test(detached + i, &done, MPI_STATUS_IGNORE);
        if (!done)
            detached[left++] = detached[i];
    }
    detached_open = left;
    if (!detached_open)
        ready(SLOTS + 1, bytes);
    if (detached_open == detached_room) {
        detached_room = 2 * detached_room + 16;
        detached = realloc(detached, sizeof *detached * (unsigned long)detached_room);
        if (!detached) {
            fprintf(stderr, "no memory for %d requests\n", detached_room);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
    MPI_Isend(outgoing[SLOTS + 1], bytes, MPI_BYTE, direction[rank], tag, MPI_COMM_WORLD, detached + detached_open++);
}

//@ collective
/* A communicator; one of this rank alone, where it takes no part. */
struct group {
    MPI_Comm comm;
    int size;
};

static struct group oneself(void)
{
    struct group group = {MPI_COMM_SELF, 1};
    return group;
}

//@ part_of
/* The communicator of the ranks with this rank's number, in the order of their places; -1: none. */
static struct group part_of(const int *number, const int *place)
{
    struct group group = oneself();
    MPI_Comm comm;
    MPI_Comm_split(MPI_COMM_WORLD, number[rank] < 0 ? MPI_UNDEFINED : number[rank], place[rank], &comm);
    if (comm != MPI_COMM_NULL) {
        group.comm = comm;
        MPI_Comm_size(comm, &group.size);
    }
    return group;
}

//@ root
static int within(struct group group, int root)
{
    return root < group.size ? root : 0;
}

//@ type
/* Reductions add numbers, where the bytes are numbers. */
static MPI_Datatype type_of(int bytes)
{
    return bytes % 8 == 0 ? MPI_DOUBLE : bytes % 4 == 0 ? MPI_INT : MPI_BYTE;
}

static int count_of(int bytes)
{
    return bytes % 8 == 0 ? bytes / 8 : bytes % 4 == 0 ? bytes / 4 : bytes;
}

static MPI_Op op_of(int bytes)
{
    return bytes % 4 == 0 ? MPI_SUM : MPI_BOR;
}

//@ barrier
static void barrier(struct group group)
{
    MPI_Barrier(group.comm);
}

//@ start_barrier
static void start_barrier(int which, struct group group)
{
    MPI_Ibarrier(group.comm, slot(which, 0));
}

//@ broadcast
static void broadcast(struct group group, int root, int bytes)
{
    MPI_Bcast(incoming[SLOTS], bytes, MPI_BYTE, within(group, root), group.comm);
}

//@ start_broadcast
static void start_broadcast(int which, struct group group, int root, int bytes)
{
    MPI_Ibcast(incoming[which], bytes, MPI_BYTE, within(group, root), group.comm, slot(which, 0));
}

//@ reduce
static void reduce(struct group group, int root, int bytes)
{
    MPI_Reduce(ready(SLOTS, bytes), incoming[SLOTS], count_of(bytes), type_of(bytes), op_of(bytes), within(group,
               root), group.comm);
}

//@ start_reduce
static void start_reduce(int which, struct group group, int root, int bytes)
{
    MPI_Ireduce(outgoing[which], incoming[which], count_of(bytes), type_of(bytes), op_of(bytes), within(group, root),
                group.comm, slot(which, bytes));
}

//@ allreduce
static void allreduce(struct group group, int bytes)
{
    MPI_Allreduce(ready(SLOTS, bytes), incoming[SLOTS], count_of(bytes), type_of(bytes), op_of(bytes), group.comm);
}

//@ start_allreduce
static void start_allreduce(int which, struct group group, int bytes)
{
    MPI_Iallreduce(outgoing[which], incoming[which], count_of(bytes), type_of(bytes), op_of(bytes), group.comm,
                   slot(which, bytes));
}

//@ scan
static void scan(struct group group, int bytes)
{
    MPI_Scan(ready(SLOTS, bytes), incoming[SLOTS], count_of(bytes), type_of(bytes), op_of(bytes), group.comm);
}

//@ start_scan
static void start_scan(int which, struct group group, int bytes)
{
    MPI_Iscan(outgoing[which], incoming[which], count_of(bytes), type_of(bytes), op_of(bytes), group.comm, slot(which,
              bytes));
}

//@ exscan
static void exscan(struct group group, int bytes)
{
    MPI_Exscan(ready(SLOTS, bytes), incoming[SLOTS], count_of(bytes), type_of(bytes), op_of(bytes), group.comm);
}

//@ start_exscan
static void start_exscan(int which, struct group group, int bytes)
{
    MPI_Iexscan(outgoing[which], incoming[which], count_of(bytes), type_of(bytes), op_of(bytes), group.comm,
                slot(which, bytes));
}

//@ gather
static void gather(struct group group, int root, int bytes)
{
    MPI_Gather(ready(SLOTS, bytes), bytes, MPI_BYTE, incoming[SLOTS], bytes, MPI_BYTE, within(group, root), group.comm);
}

//@ start_gather
static void start_gather(int which, struct group group, int root, int bytes)
{
    MPI_Igather(outgoing[which], bytes, MPI_BYTE, incoming[which], bytes, MPI_BYTE, within(group, root), group.comm,
                slot(which, bytes));
}

//@ scatter
static void scatter(struct group group, int root, int bytes)
{
    MPI_Scatter(ready(SLOTS, (long)bytes * group.size), bytes, MPI_BYTE, incoming[SLOTS], bytes, MPI_BYTE,
                within(group, root), group.comm);
}

//@ start_scatter
static void start_scatter(int which, struct group group, int root, int bytes)
{
    MPI_Iscatter(outgoing[which], bytes, MPI_BYTE, incoming[which], bytes, MPI_BYTE, within(group, root), group.comm,
                 slot(which, (long)bytes * group.size));
}

//@ allgather
static void allgather(struct group group, int bytes)
{
    MPI_Allgather(ready(SLOTS, bytes), bytes, MPI_BYTE, incoming[SLOTS], bytes, MPI_BYTE, group.comm);
}

//@ start_allgather
static void start_allgather(int which, struct group group, int bytes)
{
    MPI_Iallgather(outgoing[which], bytes, MPI_BYTE, incoming[which], bytes, MPI_BYTE, group.comm, slot(which, bytes));
}

//@ alltoall
static void alltoall(struct group group, int bytes)
{
    MPI_Alltoall(ready(SLOTS, (long)bytes * group.size), bytes, MPI_BYTE, incoming[SLOTS], bytes, MPI_BYTE, group.comm);
}

//@ start_alltoall
static void start_alltoall(int which, struct group group, int bytes)
{
    MPI_Ialltoall(outgoing[which], bytes, MPI_BYTE, incoming[which], bytes, MPI_BYTE, group.comm, slot(which,
                  (long)bytes * group.size));
}

//@ reduce_scatter
static void reduce_scatter(struct group group, int bytes)
{
    MPI_Reduce_scatter_block(ready(SLOTS, (long)bytes * group.size), incoming[SLOTS], count_of(bytes), type_of(bytes),
                             op_of(bytes), group.comm);
}

//@ start_reduce_scatter
static void start_reduce_scatter(int which, struct group group, int bytes)
{
    MPI_Ireduce_scatter_block(outgoing[which], incoming[which], count_of(bytes), type_of(bytes), op_of(bytes),
                              group.comm, slot(which, (long)bytes * group.size));
}

//@ spread
/* Computation that takes now longer, now shorter: eight times, one after the other. All ranks take the same at the same
 * turn, as what makes a block longer mostly is where the program stands. */
static void compute_spread(const double us[8], int *turn)
{
    compute(us[*turn % 8]);
    *turn = (*turn + 1) % 8;
}

//@ parts
/* Time by parts of the program: as it passes, and times what it stands for. */
static double passed[PARTS], stands_for[PARTS];
static double since, weight_now = 1.0;
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

//@ report
/* One line of JSON by rank 0: to the file that is named, else to standard output. */
static int report(const char *path)
{
    static double all[RANKS][2 * PARTS];
    double mine[2 * PARTS];
    for (int i = 0; i < PARTS; i++) {
        mine[2 * i] = passed[i];
        mine[2 * i + 1] = stands_for[i];
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
    fprintf(out, "{\"skeleton\":1,\"mpi\":\"%s\",\"ranks\":%d,\"run_s\":%.9f,\"stands_for_s\":%.9f,\"slowest\":%d,", mpi,
            RANKS, run, whole, slowest);
    fprintf(out, "\"parts\":[");
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
