// Memory that MPI gave, which must lie where the program's does.
#include "state.h"

int main(void) {
    start();
    int *memory, *second;
    MPI_Alloc_mem(40000, MPI_INFO_NULL, &memory);
    fill(memory, 10000, rank);
    for (int i = 0; i < 3; i++) beat();
    MPI_Alloc_mem(4000, MPI_INFO_NULL, &second);
    MPI_Sendrecv(memory, 1000, MPI_INT, after, 0, second, 1000, MPI_INT, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < 3; i++) beat();
    CHECK(filled(memory, 10000, rank) && filled(second, 1000, before));
    MPI_Free_mem(memory);
    beat();
    MPI_Free_mem(second);
    beat();
    say("freed");
    return done("alloc_mem");
}
