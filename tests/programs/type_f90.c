// Types by what they can hold, as Fortran asks for them, and by size.
#include "state.h"

int main(void) {
    start();
    MPI_Datatype real, again, integer, sized;
    int n, a, b, c, combiner;
    MPI_Type_create_f90_real(12, MPI_UNDEFINED, &real);
    MPI_Type_create_f90_integer(6, &integer);
    MPI_Type_match_size(MPI_TYPECLASS_REAL, 4, &sized);
    for (int i = 0; i < 4; i++) {
        double out = rank + 0.5, in = 0;
        int number = 7 * rank + i, got = 0;
        float small = 0.25f, taken = 0;
        MPI_Type_create_f90_real(12, MPI_UNDEFINED, &again);
        MPI_Type_get_envelope(again, &a, &b, &c, &combiner);
        CHECK(again == real && combiner == MPI_COMBINER_F90_REAL && a == 2 && b == 0 && c == 0);
        MPI_Send(&out, 1, real, after, 0, MPI_COMM_WORLD);
        MPI_Send(&number, 1, integer, after, 1, MPI_COMM_WORLD);
        MPI_Send(&small, 1, sized, after, 2, MPI_COMM_WORLD);
        meet();
        MPI_Recv(&taken, 1, sized, before, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(&got, 1, integer, before, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(&in, 1, real, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(in == before + 0.5 && got == 7 * before + i && taken == 0.25f);
    }
    MPI_Type_size(real, &n);
    say("%d bytes", n);
    return done("type_f90");
}
