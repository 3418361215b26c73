// Attributes of types and communicators that are freed while they are in use: they are deleted at some time, once.
#include "state.h"

static int deleted;

static int drop_type(MPI_Datatype type, int key, void *value, void *extra) {
    (void)type, (void)key, (void)extra;
    deleted += *(int *)value;
    return MPI_SUCCESS;
}

static int drop_comm(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm, (void)key, (void)extra;
    deleted += *(int *)value;
    return MPI_SUCCESS;
}

int main(void) {
    start();
    int type_key, comm_key, values[6] = {1, 10, 100, 1000, 10000, 100000}, length, out[3], in[3][3] = {{0}}, number = -1;
    MPI_Datatype types[4], row;
    MPI_Comm comm, buffered;
    static char room[1000];
    void *detached;
    MPI_Request requests[5];
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, drop_type, &type_key, NULL);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, drop_comm, &comm_key, NULL);
    for (int i = 0; i < 4; i++) {
        MPI_Type_vector(2, 1, 2, MPI_INT, &types[i]);
        MPI_Type_commit(&types[i]);
        MPI_Type_set_attr(types[i], type_key, &values[i]);
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_attr(comm, comm_key, &values[4]);
    fill(out, 3, rank);
    MPI_Recv_init(in[0], 1, types[0], before, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Send_init(out, 1, types[1], after, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Recv_init(&number, 1, MPI_INT, before, 2, comm, &requests[2]);
    MPI_Send_init(&rank, 1, MPI_INT, after, 2, comm, &requests[3]);
    MPI_Startall(4, requests);
    MPI_Irecv(in[1], 1, types[2], before, 3, MPI_COMM_WORLD, &requests[4]);
    MPI_Type_contiguous(1, types[3], &row);
    MPI_Type_commit(&row);
    for (int i = 0; i < 4; i++) MPI_Type_free(&types[i]);
    MPI_Comm_free(&comm);
    // MPICH keeps what a buffered message was sent on until it looks after its buffer.
    MPI_Comm_dup(MPI_COMM_SELF, &buffered);
    MPI_Comm_set_attr(buffered, comm_key, &values[5]);
    MPI_Buffer_attach(room, sizeof room);
    MPI_Bsend(&rank, 1, MPI_INT, 0, 5, buffered);
    MPI_Recv(&in[2], 1, MPI_INT, 0, 5, buffered, MPI_STATUS_IGNORE);
    MPI_Comm_free(&buffered);
    for (int i = 0; i < 4; i++) beat();
    MPI_Sendrecv(out, 1, row, after, 4, in[2], 1, row, before, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(out, 2, MPI_INT, after, 3, MPI_COMM_WORLD);
    MPI_Waitall(5, requests, MPI_STATUSES_IGNORE);
    CHECK(number == before);
    for (int i = 0; i < 3; i++) CHECK(in[i][0] == before * 1000003 && in[i][1] == 0);
    for (int i = 0; i < 4; i++) MPI_Request_free(&requests[i]);
    MPI_Type_free(&row);
    MPI_Buffer_detach(&detached, &length);
    beat();
    say("deleted %d", deleted);
    CHECK(deleted == 111111);
    return done("freed_attributes");
}
