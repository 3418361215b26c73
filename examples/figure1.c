/* The program of Figure 1 of seed 000 (C. L. Mendes, "Performance Prediction by Trace Transformation"): the second and the
 * third rank compute (modules A and B) and send what they have to the first one, which takes messages as they come; for
 * one of A it does some more work.
 *
 *     figure1 wildcard|typed [ROUNDS [TYPED]]     3 ranks or more; those beyond the third do as the third does
 *
 * Of the rounds (3 if not given), the first TYPED ones (0) name the messages that they want in any case. With `wildcard` the order of events depends on how fast the ranks are: the program is unstable. With `typed` each receive
 * names the message that it wants, and the order is the same on any machine. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST = 0, A = 1, TAG = 7 };

/* Computes for so many milliseconds. */
static void compute(double ms)
{
    double end = MPI_Wtime() + ms * 1e-3;
    volatile double x = 1;
    while (MPI_Wtime() < end)
        for (int i = 0; i < 1000; i++)
            x = x * 1.0000001 + 1e-9;
}

int main(int argc, char **argv)
{
    int rank, size, value = 0, rounds = argc > 2 ? atoi(argv[2]) : 3, typed = argc > 3 ? atoi(argv[3]) : 0;
    int wildcard = argc > 1 && strcmp(argv[1], "wildcard") == 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size < 3 || (!wildcard && (argc < 2 || strcmp(argv[1], "typed") != 0))) {
        if (rank == FIRST)
            fprintf(stderr, "usage: figure1 wildcard|typed [ROUNDS [TYPED]], 3 ranks or more\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (int round = 0; round < rounds; round++) {
        if (rank == FIRST) {
            for (int from = A; from < size; from++) {
                MPI_Status status;
                int any = wildcard && round >= typed;
                MPI_Recv(&value, 1, MPI_INT, any ? MPI_ANY_SOURCE : from, TAG, MPI_COMM_WORLD, &status);
                if (status.MPI_SOURCE == A)
                    compute(1);
            }
        } else {
            compute(rank == A ? 4 : 6);
            MPI_Send(&rank, 1, MPI_INT, FIRST, TAG, MPI_COMM_WORLD);
        }
    }
    MPI_Finalize();
    return 0;
}
