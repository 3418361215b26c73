// An error handler that is left by longjmp: what comes after it are events like those before.
#include "state.h"
#include <setjmp.h>

static jmp_buf back;
static int seen;

static void leave(MPI_Comm *comm, int *code, ...) {
    (void)comm, (void)code;
    seen++;
    longjmp(back, seen);
}

int main(void) {
    start();
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(leave, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    MPI_Errhandler_free(&handler);
    for (volatile int i = 0; i < 3; i++) {
        int in = 0, left = setjmp(back);
        if (!left) {
            MPI_Send(&in, 1, MPI_INT, size + 5, 0, MPI_COMM_WORLD);
            CHECK(!"the handler was not called");
        }
        CHECK(left == i + 1);
        beat();
        exchange(MPI_COMM_WORLD, i);
    }
    say("%d errors", seen);
    return done("errhandler_left");
}
