// A structure whose bounds are told by MPI_LB and MPI_UB, which MPI 3 has removed and the libraries have kept; under Open MPI
// also a type of its own.
#include "state.h"

#ifdef OPEN_MPI
extern struct ompi_predefined_datatype_t ompi_mpi_lb, ompi_mpi_ub, ompi_mpi_2cplex;
#define LB ((MPI_Datatype)(void *)&ompi_mpi_lb)
#define UB ((MPI_Datatype)(void *)&ompi_mpi_ub)
#else
#define LB MPI_LB
#define UB MPI_UB
#endif

static void check_own(void) {
#ifdef OPEN_MPI
    MPI_Datatype own = (MPI_Datatype)(void *)&ompi_mpi_2cplex, pair, old;
    char name[MPI_MAX_OBJECT_NAME];
    int length, count;
    MPI_Aint none;
    MPI_Type_get_name(own, name, &length);
    CHECK(!strcmp(name, "MPI_2COMPLEX"));
    MPI_Type_contiguous(2, own, &pair);
    MPI_Type_get_contents(pair, 1, 0, 1, &count, &none, &old);
    CHECK(old == own);
    MPI_Type_free(&pair);
#endif
}

int main(void) {
    start();
    MPI_Datatype spaced, types[] = {LB, MPI_INT, UB};
    MPI_Aint places[] = {-4, 0, 12}, lb, extent;
    int lengths[] = {1, 1, 1}, out[12] = {0}, in[12] = {0};
    check_own();
    beat();
    MPI_Type_create_struct(3, lengths, places, types, &spaced);
    MPI_Type_commit(&spaced);
    for (int i = 0; i < 3; i++) {
        beat();
        MPI_Type_get_extent(spaced, &lb, &extent);
        CHECK(lb == -4 && extent == 16);
        fill(out, 12, rank + i);
        MPI_Sendrecv(out, 3, spaced, after, 1, in, 3, spaced, before, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int j = 0; j < 12; j++) CHECK(in[j] == (j % 4 ? 0 : (before + i) * 1000003 + j));
    }
    MPI_Type_free(&spaced);
    say("bounded");
    return done("type_bounds");
}
