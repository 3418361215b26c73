/* Communicators of random programs (fuzz.h), of all constructors, with attributes, names and error handlers. */
#ifndef FUZZ_COMMS_H
#define FUZZ_COMMS_H

enum { COMMS = 10, RANKS = 3 };

struct comm {
    MPI_Comm handle;
    /* World ranks of both groups of an intercommunicator, of the only one of others. */
    int live, inter, group[2][RANKS], count[2], topology, attribute, name, handler;
};
static struct comm comms[COMMS];
static int comm_key, errors_seen, own_class, own_code;
static MPI_Errhandler counting;

static int copy_comm(MPI_Comm comm, int key, void *extra, void *value, void *copy, int *flag) {
    copied++;
    *(void **)copy = (char *)value + (long)extra;
    *flag = 1;
    return MPI_SUCCESS;
}

static int delete_comm(MPI_Comm comm, int key, void *value, void *extra) {
    deleted++;
    return MPI_SUCCESS;
}

static void count_error(MPI_Comm *comm, int *code, ...) {
    int class;
    MPI_Error_class(*code, &class);
    errors_seen += class == own_class ? 1000 : 1;
}

/* The place of a world rank in a group; -1 if it is not in it. */
static int place(const struct comm *c, int side, int world) {
    for (int i = 0; i < c->count[side]; i++)
        if (c->group[side][i] == world) return i;
    return -1;
}

/* The group that this rank is in; -1 if it is in none. */
static int side_of(const struct comm *c) {
    if (place(c, 0, rank) >= 0) return 0;
    return c->inter && place(c, 1, rank) >= 0 ? 1 : -1;
}

static struct comm *some_comm(void) {
    struct comm *c = &comms[draw(COMMS)];
    return c->live ? c : &comms[0];
}

static void duplicate(const struct comm *old, struct comm *new, int how) {
    MPI_Request request;
    MPI_Info info;
    *new = *old;
    new->attribute = old->attribute ? old->attribute + 7 : 0;
    new->name = 0;
    if (side_of(old) < 0) return;
    if (how == 0) {
        MPI_Comm_dup(old->handle, &new->handle);
    } else if (how == 1) {
        MPI_Info_create(&info);
        MPI_Info_set(info, "a_key", "a value");
        MPI_Comm_dup_with_info(old->handle, info, &new->handle);
        MPI_Info_free(&info);
    } else {
        MPI_Comm_idup(old->handle, &new->handle, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

/* Only the part of one colour is kept. */
static void split(const struct comm *old, struct comm *new) {
    int colors[RANKS], keys[RANKS], own = place(old, 0, rank);
    for (int i = 0; i < RANKS; i++) colors[i] = draw(4) == 0, keys[i] = draw(3);
    for (int key = 0; key < 3; key++)
        for (int i = 0; i < old->count[0]; i++)
            if (!colors[i] && keys[i] == key) new->group[0][new->count[0]++] = old->group[0][i];
    if (own >= 0) MPI_Comm_split(old->handle, colors[own] ? MPI_UNDEFINED : 7, keys[own], &new->handle);
}

static void of_group(const struct comm *old, struct comm *new) {
    int n = 1 + draw(old->count[0]), first = draw(old->count[0]), back = draw(2), some = draw(2), tag = draw(1000);
    int ranks[RANKS];
    MPI_Group all, part;
    for (int i = 0; i < n; i++) {
        ranks[i] = (first + (back ? old->count[0] - i : i)) % old->count[0];
        new->group[0][new->count[0]++] = old->group[0][ranks[i]];
    }
    if (place(old, 0, rank) < 0) return;
    MPI_Comm_group(old->handle, &all);
    MPI_Group_incl(all, n, ranks, &part);
    /* Open MPI 4.1 copies attributes and topology where a communicator is made of a group by its members. */
    if (!some || old->attribute || old->topology) MPI_Comm_create(old->handle, part, &new->handle);
    else if (place(new, 0, rank) >= 0) MPI_Comm_create_group(old->handle, part, tag, &new->handle);
    MPI_Group_free(&all);
    MPI_Group_free(&part);
}

static void grid(const struct comm *old, struct comm *new) {
    int dims[2] = {old->count[0], 1}, periods[2] = {1, draw(2)}, weighted = draw(2);
    int n = dims[0], own = place(old, 0, rank);
    *new = *old;
    new->topology = 1 + draw(2);
    new->attribute = new->name = 0;
    if (own < 0) return;
    if (new->topology == 1) {
        MPI_Cart_create(old->handle, 2, dims, periods, 0, &new->handle);
    } else {
        int from[2] = {(own + n - 1) % n, own}, to[2] = {(own + 1) % n, own}, weights[2] = {5, 6};
        int *w = weighted ? weights : MPI_UNWEIGHTED;
        MPI_Dist_graph_create_adjacent(old->handle, 2, from, w, 2, to, w, MPI_INFO_NULL, 0, &new->handle);
    }
}

/* An intercommunicator of two parts, or one communicator of both. */
static void across(const struct comm *old, struct comm *new) {
    int own = side_of(old), n = old->count[0], cut = n > 1 ? 1 + draw(n - 1) : 0;
    MPI_Comm local;
    new->inter = !old->inter;
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < old->count[side]; i++) {
            int to = old->inter ? 0 : i >= cut;
            new->group[to][new->count[to]++] = old->group[side][i];
        }
    if (own < 0) return;
    if (old->inter) {
        MPI_Intercomm_merge(old->handle, own, &new->handle);
    } else {
        own = place(old, 0, rank);
        MPI_Comm_split(old->handle, own >= cut, own, &local);
        MPI_Intercomm_create(local, 0, old->handle, own >= cut ? 0 : cut, 77, &new->handle);
        MPI_Comm_free(&local);
    }
}

static void new_comm(void) {
    const struct comm *old = some_comm();
    struct comm *c = &comms[1 + draw(COMMS - 1)], made = {0};
    int kind = draw(7), sets = draw(2), names = draw(2), handler = draw(3), value = 1000 + draw(5000);
    char name[32];
    if (c->live || (old->inter && kind > 2 && kind < 6) || (!old->inter && kind == 6 && old->count[0] < 2)) return;
    made.handle = MPI_COMM_NULL;
    switch (kind) {
    case 0: case 1: duplicate(old, &made, kind); break;
    case 2: duplicate(old, &made, old->inter ? 0 : 2); break;
    case 3: split(old, &made); break;
    case 4: of_group(old, &made); break;
    case 5: grid(old, &made); break;
    default: across(old, &made); break;
    }
    made.live = made.count[0] > 0;
    made.handler = handler;
    if (sets) made.attribute = value;
    if (names) made.name = value;
    *c = made;
    if (!made.live || side_of(c) < 0) {
        c->handle = MPI_COMM_NULL;
        return;
    }
    snprintf(name, sizeof name, "comm %d", value);
    if (sets) MPI_Comm_set_attr(c->handle, comm_key, (void *)(long)value);
    if (names) MPI_Comm_set_name(c->handle, name);
    MPI_Comm_set_errhandler(c->handle, handler > 1 ? counting : handler ? MPI_ERRORS_RETURN : MPI_ERRORS_ARE_FATAL);
}

static void check_group(MPI_Group group, const struct comm *c, int side) {
    int n, ids[RANKS] = {0, 1, 2}, world[RANKS];
    MPI_Group all;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_size(group, &n);
    CHECK(n == c->count[side]);
    MPI_Group_translate_ranks(group, n, ids, all, world);
    for (int i = 0; i < n; i++) CHECK(world[i] == c->group[side][i]);
    MPI_Group_free(&all);
    MPI_Group_free(&group);
}

static void check_errors(const struct comm *c) {
    MPI_Errhandler handler;
    int number = 0, before_it = errors_seen, class;
    MPI_Comm_get_errhandler(c->handle, &handler);
    if (c->handler == 2) {
        CHECK(handler == counting);
        MPI_Errhandler_free(&handler);
        MPI_Comm_call_errhandler(c->handle, own_code);
        CHECK(errors_seen == before_it + 1000);
    } else {
        CHECK(handler == (c->handler ? MPI_ERRORS_RETURN : MPI_ERRORS_ARE_FATAL));
    }
    if (!c->handler) return;
    MPI_Error_class(MPI_Send(&number, 1, MPI_INT, 99, 0, c->handle), &class);
    CHECK(class == MPI_ERR_RANK);
}

static void check_comm(const struct comm *c) {
    int n, own, inter, flag, length, side = side_of(c), topology;
    char name[MPI_MAX_OBJECT_NAME], wanted[32];
    void *value;
    MPI_Group group;
    CHECK((side < 0) == (c->handle == MPI_COMM_NULL));
    if (side < 0) return;
    MPI_Comm_rank(c->handle, &own);
    MPI_Comm_test_inter(c->handle, &inter);
    CHECK(!inter == !c->inter && own == place(c, side, rank));
    MPI_Comm_group(c->handle, &group);
    check_group(group, c, side);
    if (inter) {
        MPI_Comm_remote_group(c->handle, &group);
        check_group(group, c, !side);
    }
    MPI_Comm_get_attr(c->handle, comm_key, &value, &flag);
    CHECK(!flag == !c->attribute && (!flag || (long)value == c->attribute));
    snprintf(wanted, sizeof wanted, "comm %d", c->name);
    MPI_Comm_get_name(c->handle, name, &length);
    CHECK(!c->name || !strcmp(name, wanted));
    MPI_Topo_test(c->handle, &topology);
    n = c->count[0];
    if (c->topology == 1) {
        int dims[2], periods[2], at[2];
        CHECK(topology == MPI_CART);
        MPI_Cart_get(c->handle, 2, dims, periods, at);
        CHECK(dims[0] == n && dims[1] == 1 && periods[0] && at[0] == own);
        mix(periods[1]);
    } else if (c->topology == 2) {
        int from[2], to[2], ins, outs, weighted, weights[2][2] = {{0}};
        CHECK(topology == MPI_DIST_GRAPH);
        MPI_Dist_graph_neighbors_count(c->handle, &ins, &outs, &weighted);
        MPI_Dist_graph_neighbors(c->handle, 2, from, weights[0], 2, to, weights[1]);
        CHECK(from[0] == (own + n - 1) % n && to[0] == (own + 1) % n && from[1] == own);
        if (weighted) mix(weights[0][0] + weights[1][1]);
    } else {
        CHECK(topology == MPI_UNDEFINED);
    }
    check_errors(c);
}

static void free_comm(struct comm *c) {
    check_comm(c);
    if (c->handle != MPI_COMM_NULL) MPI_Comm_free(&c->handle);
    CHECK(c->handle == MPI_COMM_NULL);
    c->live = 0;
}
#endif
