// A large message that is under way where a cut is refused: its sender waits for the receiver.
// ranks: 2
// refuses: it lies within a call
#include "state.h"

enum { N = 200000 };
static int data[N];

int main(void) {
    start();
    for (int i = 0; i < 3; i++) {
        int small[2] = {0, 0};
        if (rank == 1) {
            small[0] = small[1] = i + 1;
            MPI_Send(&small[0], 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
            MPI_Send(&small[1], 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
            fill(data, N, i);
            MPI_Send(data, N, MPI_INT, 0, 3, MPI_COMM_WORLD);
        } else {
            MPI_Request requests[2];
            for (int j = 0; j < 2; j++) MPI_Irecv(&small[j], 1, MPI_INT, 1, 1 + j, MPI_COMM_WORLD, &requests[j]);
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
            CHECK(small[0] == i + 1 && small[1] == i + 1);
            memset(data, 0, sizeof data);
            MPI_Recv(data, N, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(filled(data, N, i));
        }
        beat();
    }
    say("ends with %d", data[N - 1]);
    return done("refused_large");
}
