/* Messages of random programs (fuzz.h): one is sent in some step, its receive posted in another, before or after, and
 * both are completed in a third. All ranks know of all messages. */
#ifndef FUZZ_MESSAGES_H
#define FUZZ_MESSAGES_H

enum { MESSAGES = 20 };
/* How a message is sent. Those from PERSISTENT on have a request to be freed. */
enum { ISEND, ISSEND, IBSEND, BSEND, SEND, PERSISTENT, PERSISTENT_SSEND, PERSISTENT_BSEND, MODES };

struct message {
    int live, id, mode, sent, posted, anyone, persistent;
    /* Its communicator in the list. */
    int slot;
    /* World ranks, and the ranks in the communicator. */
    int from, to, source, dest, tag;
    MPI_Comm comm;
    int ints, out_count, in_count;
    struct type out_type, in_type;
    MPI_Request out_request, in_request;
    int out[ROOM], in[ROOM];
};
static struct message messages[MESSAGES];
static int ids;

/* The same from MPI_BOTTOM, as a type of addresses. */
static MPI_Datatype absolute(int *buffer, const struct type *t, int count) {
    MPI_Aint places[2 * MOST];
    MPI_Datatype type;
    for (int i = 0; i < count * t->ints; i++) MPI_Get_address(buffer + t->map[i], &places[i]);
    MPI_Type_create_hindexed_block(count * t->ints, 1, places, MPI_INT, &type);
    MPI_Type_commit(&type);
    return type;
}

static void send(struct message *m) {
    MPI_Datatype type = m->out_type.handle;
    MPI_Request *request = &m->out_request;
    void *buffer = m->out;
    int n = m->out_count, bottom = m->id % 4 == 0;
    m->sent = 1;
    if (rank != m->from) return;
    put(m->out, &m->out_type, n, 1000 * m->id);
    if (bottom) type = absolute(m->out, &m->out_type, n), buffer = MPI_BOTTOM, n = 1;
    switch (m->mode) {
    case ISSEND: MPI_Issend(buffer, n, type, m->dest, m->tag, m->comm, request); break;
    case IBSEND: MPI_Ibsend(buffer, n, type, m->dest, m->tag, m->comm, request); break;
    case BSEND: MPI_Bsend(buffer, n, type, m->dest, m->tag, m->comm); break;
    case SEND: MPI_Send(buffer, n, type, m->dest, m->tag, m->comm); break;
    case PERSISTENT: MPI_Send_init(buffer, n, type, m->dest, m->tag, m->comm, request); break;
    case PERSISTENT_SSEND: MPI_Ssend_init(buffer, n, type, m->dest, m->tag, m->comm, request); break;
    case PERSISTENT_BSEND: MPI_Bsend_init(buffer, n, type, m->dest, m->tag, m->comm, request); break;
    default: MPI_Isend(buffer, n, type, m->dest, m->tag, m->comm, request);
    }
    if (m->mode >= PERSISTENT) MPI_Start(request);
    if (bottom) MPI_Type_free(&type);
    MPI_Type_free(&m->out_type.handle);
}

static void post(struct message *m) {
    MPI_Datatype type = m->in_type.handle;
    MPI_Message matched;
    MPI_Status status;
    void *buffer = m->in;
    int n = m->in_count, bottom = m->id % 4 == 1, source = m->anyone ? MPI_ANY_SOURCE : m->source, found;
    m->posted = 1;
    if (rank != m->to) return;
    for (int i = 0; i < ROOM; i++) m->in[i] = -1;
    if (bottom) type = absolute(m->in, &m->in_type, n), buffer = MPI_BOTTOM, n = 1;
    if (m->persistent) {
        MPI_Recv_init(buffer, n, type, source, m->tag, m->comm, &m->in_request);
        MPI_Startall(1, &m->in_request);
    } else if (m->sent && m->id % 3 == 0) {
        MPI_Mprobe(source, m->tag, m->comm, &matched, &status);
        MPI_Get_count(&status, MPI_INT, &found);
        CHECK(found == m->ints);
        MPI_Imrecv(buffer, n, type, &matched, &m->in_request);
    } else {
        if (m->sent && m->id % 3 == 1) MPI_Probe(source, m->tag, m->comm, &status);
        MPI_Irecv(buffer, n, type, source, m->tag, m->comm, &m->in_request);
    }
    if (bottom) MPI_Type_free(&type);
    MPI_Type_free(&m->in_type.handle);
}

/* Completes a request in one of the ways that there are. */
static void complete(MPI_Request *request, MPI_Status *status, int how) {
    int done = 0, index;
    switch (how % 6) {
    case 0: MPI_Wait(request, status); break;
    case 1: MPI_Waitall(1, request, status); break;
    case 2: MPI_Waitany(1, request, &index, status); break;
    case 3: MPI_Waitsome(1, request, &done, &index, status); break;
    case 4:
        while (!done) MPI_Request_get_status(*request, &done, status);
        MPI_Test(request, &done, status);
        break;
    default:
        while (!done) MPI_Testsome(1, request, &done, &index, status);
    }
}

static void finish(struct message *m) {
    MPI_Status status;
    int n;
    m->live = 0;
    if (rank == m->from && m->out_request != MPI_REQUEST_NULL) {
        complete(&m->out_request, &status, m->id);
        if (m->mode >= PERSISTENT) MPI_Request_free(&m->out_request);
        CHECK(m->out_request == MPI_REQUEST_NULL);
    }
    if (rank == m->to) {
        complete(&m->in_request, &status, m->id / 6);
        if (m->persistent) MPI_Request_free(&m->in_request);
        CHECK(m->in_request == MPI_REQUEST_NULL);
        MPI_Get_count(&status, MPI_INT, &n);
        CHECK(n == m->ints && status.MPI_SOURCE == m->source && status.MPI_TAG == m->tag);
        check_put(m->in, &m->in_type, m->in_count, 1000 * m->id);
        mix(m->id);
    }
}

/* The next step of a message. */
static void step(struct message *m) {
    if (!m->live) return;
    if (!m->sent) send(m);
    else if (!m->posted) post(m);
    else finish(m);
}

static void new_message(void) {
    const struct comm *c = some_comm();
    const struct type *t = some_type();
    struct message *m = &messages[draw(MESSAGES)];
    int side = c->inter ? draw(2) : 0, other = c->inter ? !side : 0;
    int source = draw(c->count[side]), dest = draw(c->count[other]), n = 1 + draw(t->most), mode = draw(MODES);
    int early = draw(2);
    int same_out = draw(2), same_in = draw(2), anyone = draw(3), persistent = draw(3);
    if (m->live) return;
    memset(m, 0, sizeof *m);
    m->live = 1, m->id = ++ids, m->tag = 100 + m->id;
    m->mode = mode, m->anyone = anyone == 0, m->persistent = persistent == 0;
    m->comm = c->handle, m->slot = c - comms, m->source = source, m->dest = dest;
    m->from = c->group[side][source], m->to = c->group[other][dest];
    /* A blocking send may wait for its receive. */
    if (mode == SEND && (m->from == m->to || early)) m->mode = ISEND;
    m->ints = n * t->ints;
    m->out_count = same_out ? n : m->ints, m->in_count = same_in ? n : m->ints;
    m->out_type = same_out ? *t : line, m->in_type = same_in ? *t : line;
    m->out_request = m->in_request = MPI_REQUEST_NULL;
    /* They are freed as soon as the message is sent and its receive posted. */
    if (rank == m->from) MPI_Type_dup(m->out_type.handle, &m->out_type.handle);
    if (rank == m->to) MPI_Type_dup(m->in_type.handle, &m->in_type.handle);
    if (early) send(m);
    else post(m);
}

/* Finishes the messages of a communicator, or leaves some that need it no more under way. */
static void finish_all(int slot, int leaves) {
    for (struct message *m = messages; m < messages + MESSAGES; m++)
        while (m->live && m->slot == slot && !(leaves && m->sent && m->posted)) step(m);
}
#endif
