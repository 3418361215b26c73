// Handles turned into Fortran's and back, kept as numbers over a while; statuses too.
#include "state.h"

int main(void) {
    start();
    MPI_Comm copy;
    MPI_Datatype pair;
    MPI_Request request;
    MPI_Status status;
    MPI_Fint numbers[6];
    int in = -1, relation;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Irecv(&in, 1, MPI_INT, before, 0, copy, &request);
    numbers[0] = MPI_Comm_c2f(copy), numbers[1] = MPI_Type_c2f(pair), numbers[2] = MPI_Request_c2f(request);
    numbers[3] = MPI_Op_c2f(MPI_SUM), numbers[4] = MPI_Comm_c2f(MPI_COMM_WORLD), numbers[5] = MPI_Type_c2f(MPI_DOUBLE);
    for (int i = 0; i < 4; i++) beat();
    CHECK(MPI_Comm_f2c(numbers[0]) == copy && MPI_Type_f2c(numbers[1]) == pair && MPI_Op_f2c(numbers[3]) == MPI_SUM);
    CHECK(MPI_Comm_f2c(numbers[4]) == MPI_COMM_WORLD && MPI_Type_f2c(numbers[5]) == MPI_DOUBLE);
    MPI_Comm_compare(MPI_Comm_f2c(numbers[0]), MPI_COMM_WORLD, &relation);
    CHECK(relation == MPI_CONGRUENT);
    MPI_Send(&rank, 1, MPI_INT, after, 0, MPI_Comm_f2c(numbers[0]));
    beat();
    request = MPI_Request_f2c(numbers[2]);
    MPI_Wait(&request, &status);
    CHECK(in == before && status.MPI_SOURCE == before);
    MPI_Type_free(&pair);
    MPI_Comm_free(&copy);
    beat();
    say("converted");
    return done("handles_converted");
}
