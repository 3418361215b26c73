/* Random calls of MPI, for the programs fuzz_*.c: each says with which number the random ones begin, and how many steps
 * it takes. All ranks draw the same numbers, so that each knows what the others do, and what it has to find. */
#ifndef FUZZ_H
#define FUZZ_H

#include "state.h"

static unsigned long long state, sum;

/* A random number below n, the same on all ranks. */
static int draw(int n) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (int)((state >> 20) % (unsigned)n);
}

/* Adds to what this rank says at the end: it must be what it is natively. */
static void mix(long number) { sum = (sum ^ (unsigned long long)number) * 1099511628211ull; }

#include "fuzz_types.h"
#include "fuzz_comms.h"
#include "fuzz_collectives.h"
#include "fuzz_messages.h"

/* A persistent send and its receive, started again and again. */
struct channel {
    int made, started, from, to, round, kind, out[64], in[64];
    MPI_Request requests[2];
};
static struct channel channels[6];

static void channel(void) {
    struct channel *c = &channels[draw(6)];
    int from = draw(RANKS), to = draw(RANKS), kind = draw(4), frees = draw(4), tag = 5000 + (int)(c - channels);
    MPI_Comm world = MPI_COMM_WORLD;
    if (!c->made) {
        c->made = 1, c->from = from, c->to = to, c->kind = kind;
        c->requests[0] = c->requests[1] = MPI_REQUEST_NULL;
        if (rank == to)
            MPI_Recv_init(c->in, 64, MPI_INT, kind ? from : MPI_ANY_SOURCE, tag, world, &c->requests[0]);
        if (rank == from && kind < 2) MPI_Send_init(c->out, 64, MPI_INT, to, tag, world, &c->requests[1]);
        if (rank == from && kind == 2) MPI_Ssend_init(c->out, 64, MPI_INT, to, tag, world, &c->requests[1]);
        if (rank == from && kind == 3) MPI_Bsend_init(c->out, 64, MPI_INT, to, tag, world, &c->requests[1]);
    } else if (!c->started && frees == 0) {
        for (int i = 0; i < 2; i++)
            if (c->requests[i] != MPI_REQUEST_NULL) MPI_Request_free(&c->requests[i]);
        c->made = 0;
    } else if (!c->started) {
        c->started = 1, c->round++;
        fill(c->out, 64, c->round);
        for (int i = 0; i < 2; i++)
            if (c->requests[i] != MPI_REQUEST_NULL) MPI_Startall(1, &c->requests[i]);
    } else {
        c->started = 0;
        MPI_Waitall(2, c->requests, MPI_STATUSES_IGNORE);
        CHECK(rank != c->to || filled(c->in, 64, c->round));
    }
}

/* Dictionaries, and what must be in them. */
static MPI_Info infos[3];
static int entries[3][8];

static void info(void) {
    int i = draw(3), entry = draw(8), what = draw(4), value = 1 + draw(1000), found, other = (i + 1) % 3;
    char key[16], text[MPI_MAX_INFO_VAL];
    snprintf(key, sizeof key, "key %d", entry);
    if (infos[i] == MPI_INFO_NULL) {
        MPI_Info_create(&infos[i]);
        memset(entries[i], 0, sizeof entries[i]);
    }
    if (what < 2) {
        snprintf(text, sizeof text, "%d", entries[i][entry] = value);
        MPI_Info_set(infos[i], key, text);
    } else if (what == 2 && entries[i][entry]) {
        MPI_Info_delete(infos[i], key);
        entries[i][entry] = 0;
    } else if (what == 3) {
        if (infos[other] != MPI_INFO_NULL) MPI_Info_free(&infos[other]);
        MPI_Info_dup(infos[i], &infos[other]);
        memcpy(entries[other], entries[i], sizeof entries[i]);
    }
    for (int e = 0; e < 8; e++) {
        snprintf(key, sizeof key, "key %d", e);
        MPI_Info_get(infos[i], key, sizeof text - 1, text, &found);
        CHECK(!found == !entries[i][e] && (!found || atoi(text) == entries[i][e]));
    }
}

/* What was packed in one step is unpacked in another. */
static void pack(void) {
    static char packed[16 * MOST];
    static int numbers[ROOM], packs, n, length;
    const struct type *t = some_type();
    int position = 0;
    if (n) {
        MPI_Unpack(packed, length, &position, numbers, n, MPI_INT, MPI_COMM_WORLD);
        for (int i = 0; i < n; i++) CHECK(numbers[i] == 1000 * packs + i);
        n = 0;
        return;
    }
    n = t->ints;
    put(numbers, t, 1, 1000 * ++packs);
    MPI_Pack(numbers, 1, t->handle, packed, sizeof packed, &position, MPI_COMM_WORLD);
    length = position;
}

/* Windows, on memory of the program. */
static MPI_Win windows[2];
static int shown[2][RANKS + 1];

static void window(void) {
    int w = draw(2), frees = draw(4), by = draw(3), salt = draw(1000), got = -1;
    MPI_Win *win = &windows[w];
    if (*win == MPI_WIN_NULL) {
        memset(shown[w], 0, sizeof shown[w]);
        MPI_Win_create(shown[w], sizeof shown[w], sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, win);
    } else if (frees == 0) {
        MPI_Win_free(win);
    } else {
        int out = salt + rank, all = shown[w][RANKS];
        MPI_Win_fence(0, *win);
        MPI_Put(&out, 1, MPI_INT, (rank + by) % RANKS, rank, 1, MPI_INT, *win);
        MPI_Accumulate(&salt, 1, MPI_INT, after, RANKS, 1, MPI_INT, MPI_SUM, *win);
        MPI_Win_fence(0, *win);
        CHECK(shown[w][(rank + RANKS - by) % RANKS] == salt + (rank + RANKS - by) % RANKS);
        CHECK(shown[w][RANKS] == all + salt);
        MPI_Get(&got, 1, MPI_INT, after, RANKS, 1, MPI_INT, *win);
        MPI_Win_fence(0, *win);
        CHECK(got == all + salt);
    }
}

/* A receive that nobody answers is posted, or cancelled. */
static MPI_Request unanswered = MPI_REQUEST_NULL;

static void cancel(void) {
    static int never;
    int cancelled;
    MPI_Status status;
    if (unanswered == MPI_REQUEST_NULL) {
        MPI_Irecv(&never, 1, MPI_INT, ids % 2 ? before : MPI_ANY_SOURCE, 4000, MPI_COMM_WORLD, &unanswered);
    } else {
        MPI_Cancel(&unanswered);
        MPI_Wait(&unanswered, &status);
        MPI_Test_cancelled(&status, &cancelled);
        CHECK(cancelled && never == 0);
    }
}

/* Several messages from one neighbour, which are taken as they come: in any order, all at once or in two steps. */
enum { SEVERAL = 6 };
static MPI_Request several_in[SEVERAL], several_out[SEVERAL];
static int several_left;

static void take_several(int way, int in[][40], int salt) {
    while (several_left && (way < 4 || several_left != SEVERAL / 2)) {
        int n = 1, there = 1, at[SEVERAL];
        MPI_Status found[SEVERAL];
        if (way == 1) MPI_Waitsome(SEVERAL, several_in, &n, at, found);
        else if (way == 2) MPI_Testany(SEVERAL, several_in, at, &there, found);
        else if (way == 3) MPI_Testsome(SEVERAL, several_in, &n, at, found);
        else MPI_Waitany(SEVERAL, several_in, at, found);
        for (int i = 0; there && i < n; i++) {
            CHECK(found[i].MPI_SOURCE == before && found[i].MPI_TAG == 6000 + at[i]);
            CHECK(several_in[at[i]] == MPI_REQUEST_NULL && filled(in[at[i]], 40, salt + at[i]));
            several_left--;
        }
    }
    if (!several_left) MPI_Waitall(SEVERAL, several_out, MPI_STATUSES_IGNORE);
}

static void several(int way) {
    static int in[SEVERAL][40], out[SEVERAL][40], salt;
    if (several_left) {
        take_several(way, in, salt);
        return;
    }
    salt = draw(1000);
    several_left = SEVERAL;
    for (int i = 0; i < SEVERAL; i++)
        MPI_Irecv(in[i], 40, MPI_INT, before, 6000 + i, MPI_COMM_WORLD, &several_in[i]);
    for (int i = 0; i < SEVERAL; i++) {
        fill(out[i], 40, salt + i);
        (i % 2 ? MPI_Issend : MPI_Isend)(out[i], 40, MPI_INT, after, 6000 + i, MPI_COMM_WORLD, &several_out[i]);
    }
}

static void replace(void) {
    int salt = draw(1000), number = 10 * salt + rank;
    MPI_Sendrecv_replace(&number, 1, MPI_INT, after, 4001, before, 4001, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(number == 10 * salt + before);
}

static void end_comm(struct comm *c, int leaves) {
    finish_all(c - comms, leaves);
    complete_collectives(c);
    free_comm(c);
}

static void random_step(void) {
    int what = draw(106);
    struct type *t = &types[draw(TYPES)];
    struct comm *c = &comms[1 + draw(COMMS - 1)];
    if (what < 16) new_message();
    else if (what < 42) step(&messages[draw(MESSAGES)]);
    else if (what < 52) new_type();
    else if (what < 56 && t->live) free_type(t);
    else if (what < 60 && t->live) check_type(t);
    else if (what < 65) new_comm();
    else if (what < 68 && c->live) end_comm(c, draw(2));
    else if (what < 71 && c->live) check_comm(c);
    else if (what < 83) collective();
    else if (what < 90) channel();
    else if (what < 92) info();
    else if (what < 94) pack();
    else if (what < 97) window();
    else if (what < 99) cancel();
    else if (what < 100) replace();
    else several(draw(5));
}

static void finish_everything(void) {
    if (unanswered != MPI_REQUEST_NULL) cancel();
    if (several_left) several(1);
    for (int i = 0; i < COMMS; i++) finish_all(i, 0);
    for (int i = 1; i < COMMS; i++)
        if (comms[i].live) end_comm(&comms[i], 0);
    complete_collectives(&comms[0]);
    for (struct channel *c = channels; c < channels + 6; c++)
        for (int i = 0; i < 2 && c->made; i++) {
            MPI_Wait(&c->requests[i], MPI_STATUS_IGNORE);
            if (c->requests[i] != MPI_REQUEST_NULL) MPI_Request_free(&c->requests[i]);
        }
    for (int i = 0; i < TYPES; i++)
        if (types[i].live) free_type(&types[i]);
    for (int i = 0; i < 2; i++)
        if (windows[i] != MPI_WIN_NULL) MPI_Win_free(&windows[i]);
}

static int fuzz(int seed, int steps, const char *name) {
    static char room[1 << 18];
    void *detached;
    int length;
    start();
    CHECK(size == RANKS);
    state = 88172645463325252ull ^ (unsigned long long)seed * 0x9E3779B97F4A7C15ull;
    for (int i = 0; i < 20; i++) draw(2);
    line.handle = MPI_INT, line.ints = 1, line.committed = 1, line.most = 2, line.extent = 4;
    for (int i = 0; i < 2 * MOST; i++) line.map[i] = i;
    comms[0] = (struct comm){MPI_COMM_WORLD, 1, 0, {{0, 1, 2}}, {RANKS}};
    for (int i = 0; i < 3; i++) infos[i] = MPI_INFO_NULL;
    for (int i = 0; i < 2; i++) windows[i] = MPI_WIN_NULL;
    MPI_Buffer_attach(room, sizeof room);
    MPI_Type_create_keyval(copy_type, delete_type, &type_key, NULL);
    MPI_Comm_create_keyval(copy_comm, delete_comm, &comm_key, (void *)7L);
    MPI_Comm_create_errhandler(count_error, &counting);
    MPI_Add_error_class(&own_class);
    MPI_Add_error_code(own_class, &own_code);
    MPI_Type_contiguous(4, MPI_INT, &matrix);
    MPI_Type_commit(&matrix);
    MPI_Op_create(multiply, 0, &product);
    for (int i = 0; i < steps; i++) random_step();
    finish_everything();
    MPI_Buffer_detach(&detached, &length);
    CHECK(detached == room && length == sizeof room);
    say("sum %llx, copied %d, deleted %d, errors %d, messages %d", sum, copied, deleted, errors_seen, ids);
    return done(name);
}
#endif
