// Windows whose epochs are between some ranks only: post, start, complete, wait. Nothing else synchronises the ranks: a
// pipeline along the ranks, then both neighbours of each in one group, and a test in place of a wait.
#include "state.h"

int main(void) {
    start();
    double line[8] = {0};
    int memory[8], other[2] = {-1, -1}, flag;
    MPI_Win win, second;
    MPI_Group world, from, to, both;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &before, &from);
    MPI_Group_incl(world, 1, &after, &to);
    int pair[2] = {before, after};
    MPI_Group_incl(world, before == after ? 1 : 2, pair, &both);
    memset(memory, -1, sizeof memory);
    MPI_Win_create(line, sizeof line, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &second);
    for (int i = 1; i < 8; i++) {
        if (rank > 0) {
            MPI_Win_post(from, 0, win);
            MPI_Win_wait(win);
            CHECK(line[i] == i + 0.5 * (rank - 1));
        }
        double out = i + 0.5 * rank;
        if (rank < size - 1) {
            MPI_Win_start(to, 0, win);
            MPI_Put(&out, 1, MPI_DOUBLE, after, i, 1, MPI_DOUBLE, win);
            MPI_Win_complete(win);
        }
    }
    for (int i = 0; i < 4; i++) {
        int out = 10 * i + rank;
        MPI_Win_post(both, 0, second);
        MPI_Win_start(both, 0, second);
        MPI_Put(&out, 1, MPI_INT, after, 2 * i, 1, MPI_INT, second);
        if (before != after) MPI_Put(&out, 1, MPI_INT, before, 2 * i + 1, 1, MPI_INT, second);
        MPI_Win_complete(second);
        if (i % 2) {
            MPI_Win_wait(second);
        } else {
            for (flag = 0; !flag;) MPI_Win_test(second, &flag);
        }
        CHECK(memory[2 * i] == 10 * i + before);
        CHECK(before == after || memory[2 * i + 1] == 10 * i + after);
        if (i == 1) beat();
    }
    // The second window's exposure lies across the first one's epoch, and a message goes in between.
    MPI_Win_post(from, 0, win);
    MPI_Win_post(from, 0, second);
    MPI_Win_start(to, 0, second);
    MPI_Put(&rank, 1, MPI_INT, after, 7, 1, MPI_INT, second);
    beat();
    MPI_Win_start(to, 0, win);
    MPI_Win_complete(win);
    MPI_Win_wait(win);
    MPI_Win_complete(second);
    MPI_Win_wait(second);
    CHECK(memory[7] == before);
    other[0] = total(MPI_COMM_WORLD, memory[7]);
    MPI_Win_free(&win);
    MPI_Win_free(&second);
    MPI_Group_free(&from), MPI_Group_free(&to), MPI_Group_free(&both), MPI_Group_free(&world);
    beat();
    say("last %d %d", memory[6], other[0]);
    return done("win_pscw");
}
