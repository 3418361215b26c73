// Memory that MPI gave, which must lie where the program's does: large blocks and many small ones.
#include "state.h"

int main(void) {
    start();
    enum { SMALL = 300 };
    int *memory, *second, *small[SMALL];
    MPI_Alloc_mem(40000, MPI_INFO_NULL, &memory);
    fill(memory, 10000, rank);
    for (int i = 0; i < SMALL; i++) {
        MPI_Alloc_mem(4 * (1 + i % 9), MPI_INFO_NULL, &small[i]);
        fill(small[i], 1 + i % 9, i + rank);
    }
    for (int i = 0; i < 3; i++) beat();
    for (int i = 0; i < SMALL; i += 3) {
        CHECK(filled(small[i], 1 + i % 9, i + rank));
        MPI_Free_mem(small[i]);
        MPI_Alloc_mem(4 * (1 + i % 7), MPI_INFO_NULL, &small[i]);
        fill(small[i], 1 + i % 7, i + rank);
    }
    MPI_Alloc_mem(4000, MPI_INFO_NULL, &second);
    MPI_Sendrecv(memory, 1000, MPI_INT, after, 0, second, 1000, MPI_INT, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < 3; i++) beat();
    CHECK(filled(memory, 10000, rank) && filled(second, 1000, before));
    for (int i = 0; i < SMALL; i++) {
        CHECK(filled(small[i], 1 + i % (i % 3 ? 9 : 7), i + rank));
        MPI_Free_mem(small[i]);
    }
    MPI_Free_mem(memory);
    beat();
    MPI_Free_mem(second);
    beat();
    say("freed");
    return done("alloc_mem");
}
