// Procedures of MPI 1 that have been replaced since: types by addresses, error handlers, what is asked of a type.
#include "state.h"
#include <stddef.h>

#ifdef OPEN_MPI
/* Its header has macros in their place, which refuse them. */
#undef MPI_Address
#undef MPI_Type_struct
#undef MPI_Type_hvector
#undef MPI_Type_hindexed
#undef MPI_Type_extent
#undef MPI_Type_lb
#undef MPI_Type_ub
#undef MPI_Errhandler_create
#undef MPI_Errhandler_set
#undef MPI_Errhandler_get
extern int MPI_Address(const void *, MPI_Aint *);
extern int MPI_Type_struct(int, int *, MPI_Aint *, MPI_Datatype *, MPI_Datatype *);
extern int MPI_Type_hvector(int, int, MPI_Aint, MPI_Datatype, MPI_Datatype *);
extern int MPI_Type_hindexed(int, int *, MPI_Aint *, MPI_Datatype, MPI_Datatype *);
extern int MPI_Type_extent(MPI_Datatype, MPI_Aint *);
extern int MPI_Type_lb(MPI_Datatype, MPI_Aint *);
extern int MPI_Type_ub(MPI_Datatype, MPI_Aint *);
extern int MPI_Errhandler_create(MPI_Comm_errhandler_function *, MPI_Errhandler *);
extern int MPI_Errhandler_set(MPI_Comm, MPI_Errhandler);
extern int MPI_Errhandler_get(MPI_Comm, MPI_Errhandler *);
#endif

struct pair {
    int number;
    double value;
};
static int failures;

static void failed(MPI_Comm *comm, int *code, ...) {
    (void)code;
    failures += *comm == MPI_COMM_WORLD;
}

int main(void) {
    start();
    struct pair out[4], in[4];
    int lengths[2] = {1, 1}, blocks[2] = {1, 2}, sent[8], got[8];
    MPI_Aint places[2], base, extent, low, high;
    MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE}, pair, column, two;
    MPI_Errhandler handler, again;
    MPI_Status status;
    MPI_Address(&out[0], &base);
    MPI_Address(&out[0].number, &places[0]);
    MPI_Address(&out[0].value, &places[1]);
    places[0] -= base, places[1] -= base;
    MPI_Type_struct(2, lengths, places, types, &pair);
    MPI_Type_commit(&pair);
    MPI_Type_hvector(4, 1, 2 * sizeof(int), MPI_INT, &column);
    MPI_Type_commit(&column);
    beat();
    places[0] = sizeof(int), places[1] = 4 * sizeof(int);
    MPI_Type_hindexed(2, blocks, places, MPI_INT, &two);
    MPI_Type_commit(&two);
    MPI_Errhandler_create(failed, &handler);
    MPI_Errhandler_set(MPI_COMM_WORLD, handler);
    MPI_Errhandler_free(&handler);
    beat();
    MPI_Type_extent(pair, &extent);
    MPI_Type_lb(two, &low);
    MPI_Type_ub(two, &high);
    CHECK(extent == sizeof(struct pair) && low == sizeof(int) && high == 6 * sizeof(int));
    for (int i = 0; i < 4; i++) out[i].number = 10 * rank + i, out[i].value = rank + 0.5 * i;
    MPI_Sendrecv(out, 4, pair, after, 1, in, 4, pair, before, 1, MPI_COMM_WORLD, &status);
    for (int i = 0; i < 4; i++) CHECK(in[i].number == 10 * before + i && in[i].value == before + 0.5 * i);
    for (int i = 0; i < 8; i++) sent[i] = 100 * rank + i, got[i] = -1;
    MPI_Sendrecv(sent, 1, column, after, 2, got, 4, MPI_INT, before, 2, MPI_COMM_WORLD, &status);
    for (int i = 0; i < 4; i++) CHECK(got[i] == 100 * before + 2 * i);
    MPI_Sendrecv(sent, 1, two, after, 3, got, 3, MPI_INT, before, 3, MPI_COMM_WORLD, &status);
    CHECK(got[0] == 100 * before + 1 && got[1] == 100 * before + 4 && got[2] == 100 * before + 5);
    beat();
    MPI_Send(sent, 1, MPI_INT, size + 7, 1, MPI_COMM_WORLD);
    CHECK(failures == 1);
    MPI_Errhandler_get(MPI_COMM_WORLD, &again);
    CHECK(again != MPI_ERRORS_ARE_FATAL);
    MPI_Errhandler_free(&again);
    MPI_Type_free(&two);
    MPI_Type_free(&column);
    MPI_Type_free(&pair);
    beat();
    say("through");
    return done("mpi1");
}
