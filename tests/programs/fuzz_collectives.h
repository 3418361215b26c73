/* Collectives of random programs (fuzz.h), blocking, or nonblocking and completed some steps later. */
#ifndef FUZZ_COLLECTIVES_H
#define FUZZ_COLLECTIVES_H

enum { PENDING = 4, WORDS = 4 * RANKS };

struct collective {
    const struct comm *comm;
    MPI_Request request;
    int live, in[WORDS], out[WORDS], wanted[WORDS], counts[RANKS], from[RANKS], to[RANKS];
    MPI_Aint places[2];
    MPI_Datatype types[RANKS];
};
static struct collective collectives[PENDING];
static MPI_Datatype matrix;
static MPI_Op product;

/* Matrices of two by two, whose product depends on the order. */
static void multiply(void *in, void *inout, int *n, MPI_Datatype *type) {
    int *a = in, *b = inout;
    CHECK(*type == matrix);
    for (int i = 0; i < *n; i++, a += 4, b += 4) {
        int c[4];
        for (int j = 0; j < 4; j++) c[j] = a[j / 2 * 2] * b[j % 2] + a[j / 2 * 2 + 1] * b[j % 2 + 2];
        for (int j = 0; j < 4; j++) b[j] = c[j] % 997;
    }
}

static void value(int *m, int who, int salt) {
    m[0] = 3 + who + salt, m[1] = 5 * who + salt % 7, m[2] = 1 + who * salt % 11, m[3] = 2;
}

/* The product of what the first n of a group have. */
static void product_of(int *result, const int *group, int n, int salt) {
    int next[4], one = 1;
    value(result, group[0], salt);
    for (int i = 1; i < n; i++) {
        value(next, group[i], salt);
        multiply(result, next, &one, &matrix);
        memcpy(result, next, sizeof next);
    }
}

static void complete_collective(struct collective *p) {
    if (!p->live) return;
    MPI_Wait(&p->request, MPI_STATUS_IGNORE);
    CHECK(!memcmp(p->out, p->wanted, sizeof p->out));
    p->live = 0;
}

/* Those on a communicator that will be freed: Open MPI 4.1 does not hold it for them. */
static void complete_collectives(const struct comm *c) {
    for (int i = 0; i < PENDING; i++)
        if (collectives[i].comm == c) complete_collective(&collectives[i]);
}

#define EITHER(upper, lower, ...) (blocks ? MPI_##upper(__VA_ARGS__) : MPI_I##lower(__VA_ARGS__, &p->request))

static void neighbours(struct collective *p, const struct comm *c, int blocks, int kind, int salt) {
    int n = c->count[0], own = place(c, 0, rank), left = (own + n - 1) % n;
    MPI_Comm comm = c->handle;
    for (int i = 0; i < 4; i++) p->in[i] = 100 * own + salt + i;
    for (int i = 0; i < 2; i++) p->counts[i] = 1, p->from[i] = 1 - i, p->to[i] = 2 * i, p->types[i] = MPI_INT;
    if (kind == 0) {
        p->wanted[0] = 100 * left + salt, p->wanted[1] = 100 * own + salt;
        EITHER(Neighbor_allgather, neighbor_allgather, p->in, 1, MPI_INT, p->out, 1, MPI_INT, comm);
    } else if (kind == 1) {
        p->wanted[0] = 100 * left + salt + 1, p->wanted[2] = 100 * own + salt;
        EITHER(Neighbor_alltoallv, neighbor_alltoallv, p->in, p->counts, p->from, MPI_INT, p->out, p->counts, p->to,
               MPI_INT, comm);
    } else {
        p->places[1] = 4;
        p->wanted[0] = 100 * left + salt, p->wanted[1] = 100 * own + salt + 1;
        EITHER(Neighbor_alltoallw, neighbor_alltoallw, p->in, p->counts, p->places, p->types, p->out, p->counts,
               p->places, p->types, comm);
    }
}

static void start_collective(struct collective *p, const struct comm *c, int blocks, int kind, int salt, int root) {
    int side = side_of(c), own = place(c, side, rank), inter = c->inter;
    const int *others = c->group[inter ? !side : 0], *group = c->group[side];
    int n = c->count[inter ? !side : 0], from = inter ? root & 1 : 0, chosen = root % c->count[from];
    int sender = c->group[from][chosen], named = chosen;
    MPI_Comm comm = c->handle;
    if (inter) named = rank == sender ? MPI_ROOT : side == from ? MPI_PROC_NULL : chosen;
    value(p->in, rank, salt);
    switch (kind) {
    case 0:
        product_of(p->wanted, others, n, salt);
        EITHER(Allreduce, allreduce, p->in, p->out, 1, matrix, product, comm);
        break;
    case 1:
        if (rank == sender) product_of(p->wanted, inter ? c->group[!side] : group, inter ? c->count[!side] : n, salt);
        EITHER(Reduce, reduce, p->in, p->out, 1, matrix, product, named, comm);
        break;
    case 2:
        if (named != MPI_PROC_NULL) value(p->wanted, sender, salt);
        if (rank == sender) value(p->out, rank, salt);
        EITHER(Bcast, bcast, p->out, 4, MPI_INT, named, comm);
        break;
    case 3:
        for (int i = 0; i < n; i++) p->wanted[i] = 10 * others[i] + salt;
        p->in[0] = 10 * rank + salt;
        EITHER(Allgather, allgather, p->in, 1, MPI_INT, p->out, 1, MPI_INT, comm);
        break;
    case 4:
        for (int i = 0; i < n; i++)
            p->in[i] = 10 * rank + others[i] + salt, p->wanted[i] = 10 * others[i] + rank + salt;
        EITHER(Alltoall, alltoall, p->in, 1, MPI_INT, p->out, 1, MPI_INT, comm);
        break;
    case 5:
        for (int i = 0; i < n; i++) {
            p->in[i] = 10 * rank + others[i] + salt, p->wanted[n - 1 - i] = 10 * others[i] + rank + salt;
            p->counts[i] = 1, p->from[i] = 4 * i, p->to[i] = 4 * (n - 1 - i), p->types[i] = MPI_INT;
        }
        /* Open MPI 4.1 takes as many types as there are neighbours. */
        blocks |= c->topology > 0;
        EITHER(Alltoallw, alltoallw, p->in, p->counts, p->from, p->types, p->out, p->counts, p->to, p->types, comm);
        break;
    case 6: EITHER(Barrier, barrier, comm); break;
    case 7:
        product_of(p->wanted, group, own + 1, salt);
        EITHER(Scan, scan, p->in, p->out, 1, matrix, product, comm);
        break;
    case 8:
        if (own > 0) product_of(p->wanted, group, own, salt);
        EITHER(Exscan, exscan, p->in, p->out, 1, matrix, product, comm);
        break;
    case 9: case 10:
        for (int i = 0; i < n; i++) value(p->in + 4 * i, rank, salt + i), p->counts[i] = 1;
        product_of(p->wanted, group, n, salt + own);
        if (kind == 9) EITHER(Reduce_scatter, reduce_scatter, p->in, p->out, p->counts, matrix, product, comm);
        else EITHER(Reduce_scatter_block, reduce_scatter_block, p->in, p->out, 1, matrix, product, comm);
        break;
    case 11:
        for (int i = 0; i < n; i++) p->wanted[i] = 10 * group[i] + salt;
        p->out[own] = 10 * rank + salt;
        EITHER(Allgather, allgather, MPI_IN_PLACE, 0, MPI_INT, p->out, 1, MPI_INT, comm);
        break;
    default:
        product_of(p->wanted, group, n, salt);
        value(p->out, rank, salt);
        EITHER(Allreduce, allreduce, MPI_IN_PLACE, p->out, 1, matrix, product, comm);
        break;
    }
}

static void collective(void) {
    struct collective *p = &collectives[draw(PENDING)];
    const struct comm *c = some_comm();
    int kind = draw(c->inter ? 7 : 13), blocks = draw(2), salt = draw(500), root = draw(12);
    int near = draw(2), later = draw(2);
    complete_collective(p);
    if (side_of(c) < 0) return;
    memset(p, 0, sizeof *p);
    p->request = MPI_REQUEST_NULL;
    p->live = 1, p->comm = c;
    if (c->topology == 2 && near && c->count[0] > 1) neighbours(p, c, blocks, kind % 3, salt);
    else start_collective(p, c, blocks, kind, salt, root);
    if (!later) complete_collective(p);
}
#endif
