/* One-sided communication: windows of each kind, all accesses, all ways of synchronisation. */
#include "surface.h"

enum { N = 8 };

static void fences(MPI_Win window, int *memory)
{
    int out[N], in[N], one = 1, old[N];
    for (int i = 0; i < N; i++)
        out[i] = memory[i] = rank * 100 + i;
    MPI_Win_fence(0, window);
    MPI_Put(out, N / 2, MPI_INT, partner, 0, N / 2, MPI_INT, window);
    MPI_Get(in, N / 2, MPI_INT, partner, N / 2, N / 2, MPI_INT, window);
    MPI_Win_fence(0, window);
    CHECK(memory[1] == partner * 100 + 1 && in[1] == partner * 100 + N / 2 + 1);
    MPI_Accumulate(&one, 1, MPI_INT, partner, 0, 1, MPI_INT, MPI_SUM, window);
    MPI_Win_fence(0, window);
    CHECK(memory[0] == partner * 100 + 1);
    MPI_Get_accumulate(&one, 1, MPI_INT, old, 1, MPI_INT, partner, 1, 1, MPI_INT, MPI_SUM, window);
    MPI_Win_fence(0, window);
    CHECK(old[0] == rank * 100 + 1);
}

static void locks(MPI_Win window, int *memory)
{
    int one = 1, seven = 7, old, in[N], nothing[N] = {0};
    MPI_Request r[4];
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, partner, 0, window);
    MPI_Put(nothing, N, MPI_INT, partner, 0, N, MPI_INT, window);
    MPI_Win_unlock(partner, window);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window);
    MPI_Fetch_and_op(&one, &old, MPI_INT, partner, 0, MPI_SUM, window);
    MPI_Win_flush(partner, window);
    CHECK(old == 0);
    MPI_Compare_and_swap(&seven, &old, &old, MPI_INT, partner, 1, window);
    MPI_Win_flush_all(window);
    MPI_Rput(&seven, 1, MPI_INT, partner, 2, 1, MPI_INT, window, &r[0]);
    MPI_Raccumulate(&one, 1, MPI_INT, partner, 3, 1, MPI_INT, MPI_SUM, window, &r[1]);
    MPI_Rget(in, 1, MPI_INT, partner, 4, 1, MPI_INT, window, &r[2]);
    MPI_Rget_accumulate(&one, 1, MPI_INT, &in[1], 1, MPI_INT, partner, 5, 1, MPI_INT, MPI_SUM, window, &r[3]);
    MPI_Win_flush_local(partner, window);
    MPI_Win_flush_local_all(window);
    MPI_Wait(&r[0], MPI_STATUS_IGNORE);
    MPI_Waitall(3, &r[1], MPI_STATUSES_IGNORE);
    MPI_Win_unlock_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window);
    MPI_Win_sync(window);
    CHECK(memory[0] == 1 && memory[1] == 7 && memory[2] == 7 && memory[3] == 1 && memory[5] == 1);
    MPI_Win_unlock(rank, window);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void epochs(MPI_Win window, int *memory)
{
    MPI_Group world, other;
    int out = rank + 1000, flag;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &partner, &other);
    for (int round = 0; round < 2; round++) {
        MPI_Win_post(other, 0, window);
        MPI_Win_start(other, 0, window);
        MPI_Put(&out, 1, MPI_INT, partner, 6, 1, MPI_INT, window);
        MPI_Win_complete(window);
        if (round == 0)
            MPI_Win_wait(window);
        else
            for (flag = 0; !flag;)
                MPI_Win_test(window, &flag);
        CHECK(memory[6] == partner + 1000);
    }
    MPI_Group_free(&other);
    MPI_Group_free(&world);
}

void one_sided(void)
{
    static int memory[N];
    int *given;
    MPI_Win window;
    MPI_Aint bytes = N * sizeof(int);
    MPI_Win_create(memory, bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    fences(window, memory);
    locks(window, memory);
    epochs(window, memory);
    MPI_Win_free(&window);
    MPI_Win_allocate(bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &given, &window);
    fences(window, given);
    MPI_Win_free(&window);
    MPI_Win_allocate_shared(bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &given, &window);
    fences(window, given);
    MPI_Win_free(&window);
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_attach(window, memory, bytes);
    MPI_Win_fence(0, window);
    MPI_Win_detach(window, memory);
    MPI_Win_free(&window);
}
