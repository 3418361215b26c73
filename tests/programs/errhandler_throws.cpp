// An error handler throws an exception, which goes past the MPI library to who has called it.
// ranks: 2
#include "state.h"
#include <stdexcept>
#include <string>

static int alive;

struct Guard {
    Guard() { alive++; }
    ~Guard() { alive--; }
};

static void handle(MPI_Comm *, int *, ...) {
    Guard guard;
    int number = rank;
    // A call of MPI within, before the one that fails is left.
    MPI_Comm_rank(MPI_COMM_WORLD, &number);
    throw std::runtime_error("there is no such rank");
}

static void fail(int depth) {
    Guard guard;
    int number = depth;
    if (depth > 0) fail(depth - 1);
    else MPI_Send(&number, 1, MPI_INT, size + 5, 1, MPI_COMM_WORLD);
}

int main() {
    start();
    MPI_Errhandler handler;
    int caught = 0;
    MPI_Comm_create_errhandler(handle, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    MPI_Errhandler_free(&handler);
    for (int i = 0; i < 4; i++) {
        try {
            fail(i);
        } catch (const std::exception &error) {
            caught += error.what() == std::string("there is no such rank");
        }
        CHECK(alive == 0 && caught == i + 1);
        beat();
    }
    say("caught %d", caught);
    return done("errhandler_throws");
}
