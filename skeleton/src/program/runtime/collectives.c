/* Collectives of skeletons, and the communicators that they are in, by sections as in messages.c. */
//@ collective
/* A communicator, with the place of this rank in it; one of this rank alone, where it takes no part. */
struct group {
    MPI_Comm comm;
    int size, place;
};

static struct group oneself(void)
{
    struct group group = {MPI_COMM_SELF, 1, 0};
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
        MPI_Comm_rank(comm, &group.place);
    }
    return group;
}

//@ root
static int within(struct group group, int root)
{
    return root < group.size ? root : 0;
}

//@ of_root
/* What the root alone sends: its bytes for all. */
static long of_root(struct group group, int root, int bytes)
{
    return group.place == within(group, root) ? (long)bytes * group.size : 0;
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
    MPI_Reduce(ready(SLOTS, bytes), incoming[SLOTS], count_of(bytes), type_of(bytes), op_of(bytes),
               within(group, root), group.comm);
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
    MPI_Iscan(outgoing[which], incoming[which], count_of(bytes), type_of(bytes), op_of(bytes), group.comm,
              slot(which, bytes));
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
    MPI_Scatter(ready(SLOTS, of_root(group, root, bytes)), bytes, MPI_BYTE, incoming[SLOTS], bytes, MPI_BYTE,
                within(group, root), group.comm);
}

//@ start_scatter
static void start_scatter(int which, struct group group, int root, int bytes)
{
    MPI_Iscatter(outgoing[which], bytes, MPI_BYTE, incoming[which], bytes, MPI_BYTE, within(group, root), group.comm,
                 slot(which, of_root(group, root, bytes)));
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
