/* Looks a file up and reads it, many times a step, between sums over all ranks: system calls that the fence holds up after a
   restart. `lookups STEPS LOOKUPS` */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int n, char **words) {
    int rank, size, wrong = 0;
    char name[64], text[16] = "0123456789abcde";
    MPI_Init(&n, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int steps = n > 1 ? atoi(words[1]) : 300, lookups = n > 2 ? atoi(words[2]) : 100;
    snprintf(name, sizeof name, "lookups-%d.data", rank);
    int file = open(name, O_CREAT | O_WRONLY | O_TRUNC, 0600);
    wrong += file < 0 || write(file, text, sizeof text) != sizeof text;
    close(file);
    for (int step = 0; step < steps; step++) {
        volatile double value = 1;
        int found = 0, all = 0;
        for (int i = 0; i < 200000; i++) value = value * 0.9999 + 1e-4;
        for (int i = 0; i < lookups; i++) {
            struct stat about;
            int again = stat(name, &about) == 0 ? open(name, O_RDONLY) : -1;
            found += again >= 0 && read(again, text, sizeof text) == about.st_size;
            close(again);
        }
        MPI_Allreduce(&found, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        wrong += all != size * lookups;
    }
    unlink(name);
    if (rank == 0) printf("%d steps, %s\n", steps, wrong ? "wrong" : "right");
    MPI_Finalize();
    return wrong != 0;
}
