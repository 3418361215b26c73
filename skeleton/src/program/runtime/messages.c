/* Messages of skeletons: data, requests, sends and receives. Each section that a skeleton needs is copied into it. */
//@ buffers
/* Synthetic data: each request has its own, then calls that block, then sends that nobody waits for. */
static char *outgoing[SLOTS + 2], *incoming[SLOTS + 1];

/* Each page of it is there before it is used, as the program's is. */
static char *buffer(unsigned long bytes)
{
    char *data = calloc(bytes, 1);
    if (!data) {
        fprintf(stderr, "no memory for a buffer of %lu bytes\n", bytes);
        MPI_Abort(MPI_COMM_WORLD, 1);
        return NULL;
    }
    for (unsigned long i = 0; i < bytes; i += 4096)
        data[i] = 0;
    return data;
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

//@ arrival
/* Where messages arrive. A program that has gone through more memory than a processor's own caches hold finds none of a
 * message's lines there: then the next one lands elsewhere, where none has been for long. */
#define CACHED (4.0 * 1024.0 * 1024.0)
static struct {
    unsigned long count, apart, at;
    double moved;
} landing[SLOTS + 1];

static void make_landings(int which, unsigned long bytes, unsigned long count, unsigned long apart)
{
    landing[which].count = count;
    landing[which].apart = apart;
    incoming[which] = buffer(bytes > count * apart ? bytes : count * apart);
}

static char *arrival(int which)
{
    if (gone_through - landing[which].moved > CACHED) {
        landing[which].moved = gone_through;
        landing[which].at = (landing[which].at + 1) % landing[which].count;
    }
    return incoming[which] + landing[which].at * landing[which].apart;
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
        MPI_Recv(arrival(SLOTS), bytes, MPI_BYTE, direction[rank], tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
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
        MPI_Irecv(arrival(which), bytes, MPI_BYTE, direction[rank], tag, MPI_COMM_WORLD, free_slot);
}

//@ exchange
static void exchange(const int *to, int send_tag, int sent, const int *from, int receive_tag, int received)
{
    if (ALONE(to))
        with_oneself(sent);
    if (ALONE(from))
        with_oneself(received);
    MPI_Sendrecv(ready(SLOTS, sent), sent, MPI_BYTE, ALONE(to) ? MPI_PROC_NULL : to[rank], send_tag, arrival(SLOTS),
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
