/* Every way to make a communicator; each is used once, so that its messages must be told apart from the world's. */
#include "surface.h"

static void use(MPI_Comm comm)
{
    int mine, all, sum = -1, one = 1;
    MPI_Comm_rank(comm, &mine);
    MPI_Comm_size(comm, &all);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    CHECK(sum == all);
    MPI_Sendrecv(&mine, 1, MPI_INT, (mine + 1) % all, 5, &sum, 1, MPI_INT, (mine + all - 1) % all, 5, comm,
                 MPI_STATUS_IGNORE);
    CHECK(sum == (mine + all - 1) % all);
}

static void done(MPI_Comm *comm)
{
    use(*comm);
    MPI_Comm_free(comm);
}

static void copies_and_parts(void)
{
    MPI_Comm made;
    MPI_Request request;
    MPI_Group world, half;
    int halves[3] = {0, size / 2 - 1, 1};
    MPI_Comm_dup(MPI_COMM_WORLD, &made);
    done(&made);
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, &made);
    done(&made);
    MPI_Comm_idup(MPI_COMM_WORLD, &made, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    done(&made);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &made);
    done(&made);
    MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? MPI_UNDEFINED : 1, 0, &made);
    CHECK((made == MPI_COMM_NULL) == (rank == 0));
    if (made != MPI_COMM_NULL)
        done(&made);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made);
    use(made);
    MPI_Comm_disconnect(&made);

    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_range_incl(world, 1, &halves, &half);
    MPI_Comm_create(MPI_COMM_WORLD, half, &made);
    if (made != MPI_COMM_NULL)
        done(&made);
    if (rank < size / 2) {
        MPI_Comm_create_group(MPI_COMM_WORLD, half, 7, &made);
        done(&made);
    }
    MPI_Group_free(&half);
    MPI_Group_free(&world);
}

static void topologies(void)
{
    MPI_Comm made, row;
    int shape[2] = {2, size / 2}, around[2] = {1, 0}, keep[2] = {0, 1};
    int next = (rank + 1) % size, before = (rank + size - 1) % size, degree = 1, weight = 1, received = -1;
    MPI_Cart_create(MPI_COMM_WORLD, 2, shape, around, 0, &made);
    MPI_Cart_sub(made, keep, &row);
    use(row);
    MPI_Comm_free(&row);
    done(&made);

    int *index = malloc(sizeof(int) * (size_t)size), *edges = malloc(sizeof(int) * (size_t)size);
    for (int i = 0; i < size; i++) {
        index[i] = i + 1;
        edges[i] = i ^ 1;
    }
    MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &made);
    MPI_Neighbor_allgather(&rank, 1, MPI_INT, &received, 1, MPI_INT, made);
    CHECK(received == partner);
    done(&made);
    free(index);
    free(edges);

    MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, &degree, &next, &weight, MPI_INFO_NULL, 0, &made);
    MPI_Neighbor_allgather(&rank, 1, MPI_INT, &received, 1, MPI_INT, made);
    CHECK(received == before);
    done(&made);
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &before, &weight, 1, &next, &weight, MPI_INFO_NULL, 0,
                                   &made);
    MPI_Neighbor_alltoall(&rank, 1, MPI_INT, &received, 1, MPI_INT, made);
    CHECK(received == before);
    done(&made);
}

static void between_groups(void)
{
    MPI_Comm half, inter, merged;
    int upper = rank >= size / 2, mine, sum, received = -1;
    MPI_Comm_split(MPI_COMM_WORLD, upper, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, upper ? 0 : size / 2, 8, &inter);
    MPI_Comm_rank(inter, &mine);
    /* In an inter-communicator a rank is one of the other group. */
    MPI_Sendrecv(&rank, 1, MPI_INT, mine, 9, &received, 1, MPI_INT, mine, 9, inter, MPI_STATUS_IGNORE);
    CHECK(received == (upper ? rank - size / 2 : rank + size / 2));
    MPI_Barrier(inter);
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, inter);
    MPI_Bcast(&received, 1, MPI_INT, upper ? 0 : (mine == 0 ? MPI_ROOT : MPI_PROC_NULL), inter);
    MPI_Intercomm_merge(inter, upper, &merged);
    done(&merged);
    MPI_Comm_free(&inter);
    done(&half);
}

void communicators(void)
{
    copies_and_parts();
    topologies();
    between_groups();
    /* Handles are given again after they were freed: the ids in a trace must not be. */
    for (int i = 0; i < 3; i++) {
        MPI_Comm made;
        MPI_Comm_split(MPI_COMM_WORLD, (rank + i) % 2, rank, &made);
        done(&made);
    }
}
