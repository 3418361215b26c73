/* Datatypes of random programs (fuzz.h): of all constructors, one made of the other, with attributes and names. Which
 * integers a type has, and where, is asked for when it is made; it must be the same ever after. */
#ifndef FUZZ_TYPES_H
#define FUZZ_TYPES_H

/* Slots for types; integers of a type at most, and of a buffer. */
enum { TYPES = 16, MOST = 64, ROOM = 2048 };

struct type {
    MPI_Datatype handle;
    int live, ints, committed, attribute, name;
    /* Where the integers of two of them in a row are, in integers; most of such elements that do not overlap. */
    int map[2 * MOST], most;
    MPI_Aint lb, extent;
};
static struct type types[TYPES];
/* One integer, of which there may be many. */
static struct type line;
static int type_key, copied, deleted;

static int copy_type(MPI_Datatype type, int key, void *extra, void *value, void *copy, int *flag) {
    copied++;
    *(void **)copy = (char *)value + 1;
    *flag = 1;
    return MPI_SUCCESS;
}

static int delete_type(MPI_Datatype type, int key, void *value, void *extra) {
    deleted++;
    return MPI_SUCCESS;
}

/* Looks where a type's integers are; 0 if it is none that a message can be received with. */
static int learn(struct type *t) {
    static int numbers[ROOM];
    static unsigned char packed[8 * MOST];
    char used[ROOM] = {0};
    MPI_Aint true_lb, true_extent, position = 0;
    MPI_Datatype copy;
    int bytes;
    MPI_Type_size(t->handle, &bytes);
    MPI_Type_get_extent(t->handle, &t->lb, &t->extent);
    MPI_Type_get_true_extent(t->handle, &true_lb, &true_extent);
    t->ints = bytes / 4;
    if (t->ints == 0 || t->ints > MOST || true_lb < 0 || t->extent <= 0) return 0;
    if (true_lb + true_extent + t->extent > 4 * ROOM) return 0;
    for (int i = 0; i < ROOM; i++) numbers[i] = i;
    MPI_Type_dup(t->handle, &copy);
    MPI_Type_commit(&copy);
    MPI_Pack_external("external32", numbers, 2, copy, packed, sizeof packed, &position);
    MPI_Type_free(&copy);
    CHECK(position == 8 * t->ints);
    t->most = 2;
    for (int i = 0; i < 2 * t->ints; i++) {
        const unsigned char *at = packed + 4 * i;
        t->map[i] = at[0] << 24 | at[1] << 16 | at[2] << 8 | at[3];
        if (used[t->map[i]]++ && t->most > i / t->ints) t->most = i / t->ints;
    }
    return t->most > 0;
}

static const struct type *some_old(void) {
    int s = draw(TYPES);
    return types[s].live ? &types[s] : &line;
}

/* Calls the constructor of this number; 0 if there is none of such types. */
static int construct(int kind, MPI_Datatype *new) {
    const struct type *old = some_old();
    int a = 1 + draw(3), b = 1 + draw(3), gap = draw(4), flip = draw(2), first = draw(4);
    int lengths[3] = {a, b, 1}, places[3] = {first, first + a + gap, first + a + gap + b};
    MPI_Aint bytes[3];
    MPI_Datatype several[3] = {old->handle, old->handle, old->handle};
    if (flip) places[0] = places[2] + 1;
    for (int i = 0; i < 3; i++) bytes[i] = places[i] * old->extent + 4 * gap;
    switch (kind) {
    case 0: return MPI_Type_contiguous(a, old->handle, new) == 0;
    case 1: return MPI_Type_vector(a, b, b + gap, old->handle, new) == 0;
    case 2: return MPI_Type_create_hvector(a, b, (b + gap) * old->extent + 4 * gap, old->handle, new) == 0;
    case 3: return MPI_Type_indexed(3, lengths, places, old->handle, new) == 0;
    case 4: return MPI_Type_create_hindexed(3, lengths, bytes, old->handle, new) == 0;
    case 5: return MPI_Type_create_indexed_block(3, a, places, old->handle, new) == 0;
    case 6: return MPI_Type_create_hindexed_block(3, a, bytes, old->handle, new) == 0;
    /* Of one type: libraries differ in the bounds of a structure of resized and other types. */
    case 7: return MPI_Type_create_struct(3, lengths, bytes, several, new) == 0;
    case 8: return MPI_Type_create_resized(old->handle, old->lb, old->extent + 4 * gap, new) == 0;
    case 9: return MPI_Type_dup(old->handle, new) == 0;
    case 10: {
        int sizes[2] = {a + gap, b + first}, starts[2] = {gap / 2, first / 2};
        int order = flip ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
        return old->lb == 0 && MPI_Type_create_subarray(2, sizes, lengths, starts, order, old->handle, new) == 0;
    }
    default: {
        int n = 2 * a + 2, of = 2, how = gap & 1 ? MPI_DISTRIBUTE_BLOCK : MPI_DISTRIBUTE_CYCLIC;
        int argument = gap & 1 ? MPI_DISTRIBUTE_DFLT_DARG : 1;
        return old->lb == 0 &&
               MPI_Type_create_darray(2, flip, 1, &n, &how, &argument, &of, MPI_ORDER_C, old->handle, new) == 0;
    }
    }
}

/* What it is made of, which may come as handles that the program has already. */
static void contents(MPI_Datatype type) {
    int ints, addresses, handles, combiner, numbers[16];
    MPI_Aint places[8];
    MPI_Datatype of[8];
    MPI_Type_get_envelope(type, &ints, &addresses, &handles, &combiner);
    mix(ints + 10 * addresses + 100 * handles);
    if (combiner == MPI_COMBINER_NAMED || ints > 16 || addresses > 8 || handles > 8) return;
    MPI_Type_get_contents(type, ints, addresses, handles, numbers, places, of);
    for (int i = 0; i < addresses; i++) mix(places[i]);
    for (int i = 0; i < handles; i++) {
        int sizes[3];
        MPI_Type_get_envelope(of[i], &sizes[0], &sizes[1], &sizes[2], &combiner);
        if (combiner != MPI_COMBINER_NAMED) MPI_Type_free(&of[i]);
    }
}

static void new_type(void) {
    struct type *t = &types[draw(TYPES)], made = {0};
    int kind = draw(12), commits = draw(3), names = draw(3), sets = draw(2), value = 100 + draw(1000), flag;
    void *inherited;
    char name[32];
    if (t->live || !construct(kind, &made.handle)) return;
    if (!learn(&made)) {
        MPI_Type_free(&made.handle);
        return;
    }
    made.live = 1;
    made.committed = commits > 0;
    if (commits) MPI_Type_commit(&made.handle);
    MPI_Type_get_attr(made.handle, type_key, &inherited, &flag);
    if (flag) made.attribute = (int)(long)inherited;
    if (sets) MPI_Type_set_attr(made.handle, type_key, (void *)(long)(made.attribute = value));
    if (names == 0) {
        snprintf(name, sizeof name, "type %d", made.name = value);
        MPI_Type_set_name(made.handle, name);
    }
    *t = made;
}

static void check_type(const struct type *t) {
    struct type now = {t->handle};
    char name[MPI_MAX_OBJECT_NAME], wanted[32];
    int flag, length;
    void *value;
    CHECK(learn(&now) && now.ints == t->ints && now.lb == t->lb && now.extent == t->extent && now.most == t->most);
    CHECK(!memcmp(now.map, t->map, 2 * t->ints * sizeof(int)));
    mix(t->map[t->ints / 2] + t->extent);
    MPI_Type_get_attr(t->handle, type_key, &value, &flag);
    CHECK(!flag == !t->attribute && (!flag || (long)value == t->attribute));
    if (t->name) {
        snprintf(wanted, sizeof wanted, "type %d", t->name);
        MPI_Type_get_name(t->handle, name, &length);
        CHECK(!strcmp(name, wanted));
    }
    contents(t->handle);
}

static void free_type(struct type *t) {
    check_type(t);
    MPI_Type_free(&t->handle);
    CHECK(t->handle == MPI_DATATYPE_NULL);
    t->live = 0;
}

/* A committed one. */
static const struct type *some_type(void) {
    struct type *t = &types[draw(TYPES)];
    if (!t->live) return &line;
    if (!t->committed) MPI_Type_commit(&t->handle);
    t->committed = 1;
    return t;
}

/* Writes integers into so many elements of a type, or checks that they are there, and nothing else. */
static void put(int *buffer, const struct type *t, int count, int first) {
    for (int i = 0; i < ROOM; i++) buffer[i] = -1;
    for (int i = 0; i < count * t->ints; i++) buffer[t->map[i]] = first + i;
}

static void check_put(const int *buffer, const struct type *t, int count, int first) {
    static int wanted[ROOM];
    put(wanted, t, count, first);
    CHECK(!memcmp(buffer, wanted, sizeof wanted));
}

#endif
