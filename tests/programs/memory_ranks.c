// Memory that ranks share without MPI: of POSIX, with and without its name, and of System V. One rank writes, the others see it.
// cut: middle
// refuses: segment of System V that is not marked to be removed
#include "state.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

enum { BYTES = 65536, INTS = BYTES / 4 };

/* Memory of this name; every second rank maps it for reading only. */
static int *mapped(const char *name, int writes) {
    int file = shm_open(name, O_RDWR | O_CREAT, 0600);
    CHECK(file >= 0 && ftruncate(file, BYTES) == 0);
    int *at = mmap(NULL, BYTES, writes ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, file, 0);
    CHECK(at != MAP_FAILED);
    close(file);
    return at;
}

int main(void) {
    start();
    char names[2][40];
    for (int i = 0; i < 3; i++) beat();
    int about[2] = {getpid(), rank ? 0 : shmget(IPC_PRIVATE, BYTES, IPC_CREAT | 0600)};
    MPI_Bcast(about, 2, MPI_INT, 0, MPI_COMM_WORLD);
    for (int i = 0; i < 2; i++) snprintf(names[i], sizeof names[i], "/phasecast-test-%d-%d", about[0], i);
    int *named = mapped(names[0], rank == 0), *unnamed = mapped(names[1], 1), *segment = shmat(about[1], NULL, 0);
    CHECK(segment != (void *)-1);
    meet();
    if (rank == 0) CHECK(shm_unlink(names[1]) == 0 && shmctl(about[1], IPC_RMID, NULL) == 0);
    for (int i = 1; i < 4; i++) {
        if (rank == 0) named[i] = 10 * i;
        unnamed[1024 * rank + i] = segment[INTS - 1 - rank] = 100 * i + rank;
        meet();
        beat();
        CHECK(named[i] == 10 * i && named[0] == 0);
        for (int other = 0; other < size; other++) {
            CHECK(unnamed[1024 * other + i] == 100 * i + other && segment[INTS - 1 - other] == 100 * i + other);
        }
        meet();
    }
    munmap(named, BYTES), munmap(unnamed, BYTES);
    CHECK(shmdt(segment) == 0);
    if (rank == 0) CHECK(shm_unlink(names[0]) == 0);
    for (int i = 0; i < 3; i++) beat();
    say("shared");
    return done("memory_ranks");
}
