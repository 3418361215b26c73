// Semaphores with names, each made by one rank and opened by the next. The C library makes them under another name first.
#include "state.h"
#include <fcntl.h>
#include <semaphore.h>
#include <unistd.h>

static sem_t *named(int of, int flags) {
    char name[40];
    sprintf(name, "/semaphore_named.%d", of);
    if (flags) sem_unlink(name);
    sem_t *semaphore = sem_open(name, flags, 0600, 0);
    CHECK(semaphore != SEM_FAILED);
    return semaphore;
}

int main(void) {
    start();
    sem_t *own = named(rank, O_CREAT | O_EXCL);
    MPI_Barrier(MPI_COMM_WORLD);
    sem_t *next = named(after, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 4; i++) {
        sem_post(next);
        beat();
        CHECK(sem_wait(own) == 0);
    }
    int value;
    beat();
    CHECK(sem_getvalue(own, &value) == 0 && value == 0);
    sem_close(own);
    sem_close(next);
    char name[40];
    sprintf(name, "/semaphore_named.%d", rank);
    CHECK(sem_unlink(name) == 0);
    beat();
    say("value %d", value);
    return done("semaphore_named");
}
