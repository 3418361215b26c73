/* Counts the MPI calls that a program makes, by procedure, so that a test can compare them with what a tracer recorded.
 * Included after mpi.h. Every call is counted where it stands in the source, by a macro of the procedure's name. */
#ifndef COUNT_H
#define COUNT_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Ends the program with 1 if what it computed is not what it must be. */
#define CHECK(truth)                                                                                                   \
    do {                                                                                                               \
        if (!(truth)) {                                                                                                \
            fprintf(stderr, "%s:%d: wrong: %s\n", __FILE__, __LINE__, #truth);                                         \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

struct count_site {
    const char *procedure;
    long calls;
    int listed;
    struct count_site *next;
};

/* One list for all files of a program. */
__attribute__((weak)) struct count_site *count_sites;
/* Calls are counted only while this is not 0. */
__attribute__((weak)) int count_on = 1;

__attribute__((unused)) static void count_hit(struct count_site *site)
{
    if (!count_on)
        return;
    __atomic_add_fetch(&site->calls, 1, __ATOMIC_RELAXED);
    if (__atomic_exchange_n(&site->listed, 1, __ATOMIC_ACQ_REL))
        return;
    site->next = __atomic_load_n(&count_sites, __ATOMIC_ACQUIRE);
    while (!__atomic_compare_exchange_n(&count_sites, &site->next, site, 1, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        ;
}

/* Writes one line `COUNT rank procedure calls` for each procedure called, to standard output or, where the environment
 * variable COUNT_FILE names one, to the end of that file: launchers mix the longer outputs of ranks. */
__attribute__((unused)) static void count_print(int rank)
{
    static char text[32768];
    size_t used = 0;
    fflush(stdout);
    for (struct count_site *site = count_sites; site; site = site->next) {
        long calls = site->calls;
        struct count_site *other;
        for (other = count_sites; other != site; other = other->next)
            if (strcmp(other->procedure, site->procedure) == 0)
                break;
        if (other != site)
            continue; /* an earlier site of the list has told it */
        for (other = site->next; other; other = other->next)
            if (strcmp(other->procedure, site->procedure) == 0)
                calls += other->calls;
        used += (size_t)snprintf(text + used, sizeof text - used, "COUNT %d %s %ld\n", rank, site->procedure, calls);
    }
    const char *name = getenv("COUNT_FILE");
    int file = name ? open(name, O_WRONLY | O_APPEND | O_CREAT, 0666) : STDOUT_FILENO;
    CHECK(write(file, text, used) == (ssize_t)used);
}

#define CALLED(procedure, ...)                                                                                         \
    __extension__({                                                                                                    \
        static struct count_site site_ = {#procedure, 0, 0, NULL};                                                     \
        count_hit(&site_);                                                                                             \
        procedure(__VA_ARGS__);                                                                                        \
    })

#define MPI_Abort(...) CALLED(MPI_Abort, __VA_ARGS__)
#define MPI_Accumulate(...) CALLED(MPI_Accumulate, __VA_ARGS__)
#define MPI_Allgather(...) CALLED(MPI_Allgather, __VA_ARGS__)
#define MPI_Allgather_init(...) CALLED(MPI_Allgather_init, __VA_ARGS__)
#define MPI_Allgatherv(...) CALLED(MPI_Allgatherv, __VA_ARGS__)
#define MPI_Allreduce(...) CALLED(MPI_Allreduce, __VA_ARGS__)
#define MPI_Allreduce_c(...) CALLED(MPI_Allreduce_c, __VA_ARGS__)
#define MPI_Allreduce_init(...) CALLED(MPI_Allreduce_init, __VA_ARGS__)
#define MPI_Alltoall(...) CALLED(MPI_Alltoall, __VA_ARGS__)
#define MPI_Alltoall_init(...) CALLED(MPI_Alltoall_init, __VA_ARGS__)
#define MPI_Alltoallv(...) CALLED(MPI_Alltoallv, __VA_ARGS__)
#define MPI_Alltoallw(...) CALLED(MPI_Alltoallw, __VA_ARGS__)
#define MPI_Barrier(...) CALLED(MPI_Barrier, __VA_ARGS__)
#define MPI_Barrier_init(...) CALLED(MPI_Barrier_init, __VA_ARGS__)
#define MPI_Bcast(...) CALLED(MPI_Bcast, __VA_ARGS__)
#define MPI_Bcast_c(...) CALLED(MPI_Bcast_c, __VA_ARGS__)
#define MPI_Bcast_init(...) CALLED(MPI_Bcast_init, __VA_ARGS__)
#define MPI_Bsend(...) CALLED(MPI_Bsend, __VA_ARGS__)
#define MPI_Bsend_init(...) CALLED(MPI_Bsend_init, __VA_ARGS__)
#define MPI_Buffer_attach(...) CALLED(MPI_Buffer_attach, __VA_ARGS__)
#define MPI_Buffer_detach(...) CALLED(MPI_Buffer_detach, __VA_ARGS__)
#define MPI_Cancel(...) CALLED(MPI_Cancel, __VA_ARGS__)
#define MPI_Cart_create(...) CALLED(MPI_Cart_create, __VA_ARGS__)
#define MPI_Cart_sub(...) CALLED(MPI_Cart_sub, __VA_ARGS__)
#define MPI_Comm_create(...) CALLED(MPI_Comm_create, __VA_ARGS__)
#define MPI_Comm_create_group(...) CALLED(MPI_Comm_create_group, __VA_ARGS__)
#define MPI_Comm_disconnect(...) CALLED(MPI_Comm_disconnect, __VA_ARGS__)
#define MPI_Comm_dup(...) CALLED(MPI_Comm_dup, __VA_ARGS__)
#define MPI_Comm_dup_with_info(...) CALLED(MPI_Comm_dup_with_info, __VA_ARGS__)
#define MPI_Comm_free(...) CALLED(MPI_Comm_free, __VA_ARGS__)
#define MPI_Comm_group(...) CALLED(MPI_Comm_group, __VA_ARGS__)
#define MPI_Comm_idup(...) CALLED(MPI_Comm_idup, __VA_ARGS__)
#define MPI_Comm_rank(...) CALLED(MPI_Comm_rank, __VA_ARGS__)
#define MPI_Comm_size(...) CALLED(MPI_Comm_size, __VA_ARGS__)
#define MPI_Comm_split(...) CALLED(MPI_Comm_split, __VA_ARGS__)
#define MPI_Comm_split_type(...) CALLED(MPI_Comm_split_type, __VA_ARGS__)
#define MPI_Compare_and_swap(...) CALLED(MPI_Compare_and_swap, __VA_ARGS__)
#define MPI_Dist_graph_create(...) CALLED(MPI_Dist_graph_create, __VA_ARGS__)
#define MPI_Dist_graph_create_adjacent(...) CALLED(MPI_Dist_graph_create_adjacent, __VA_ARGS__)
#define MPI_Exscan(...) CALLED(MPI_Exscan, __VA_ARGS__)
#define MPI_Fetch_and_op(...) CALLED(MPI_Fetch_and_op, __VA_ARGS__)
#define MPI_File_close(...) CALLED(MPI_File_close, __VA_ARGS__)
#define MPI_File_delete(...) CALLED(MPI_File_delete, __VA_ARGS__)
#define MPI_File_get_position(...) CALLED(MPI_File_get_position, __VA_ARGS__)
#define MPI_File_get_size(...) CALLED(MPI_File_get_size, __VA_ARGS__)
#define MPI_File_iread(...) CALLED(MPI_File_iread, __VA_ARGS__)
#define MPI_File_iread_all(...) CALLED(MPI_File_iread_all, __VA_ARGS__)
#define MPI_File_iread_at(...) CALLED(MPI_File_iread_at, __VA_ARGS__)
#define MPI_File_iread_at_all(...) CALLED(MPI_File_iread_at_all, __VA_ARGS__)
#define MPI_File_iwrite(...) CALLED(MPI_File_iwrite, __VA_ARGS__)
#define MPI_File_iwrite_all(...) CALLED(MPI_File_iwrite_all, __VA_ARGS__)
#define MPI_File_iwrite_at(...) CALLED(MPI_File_iwrite_at, __VA_ARGS__)
#define MPI_File_iwrite_at_all(...) CALLED(MPI_File_iwrite_at_all, __VA_ARGS__)
#define MPI_File_open(...) CALLED(MPI_File_open, __VA_ARGS__)
#define MPI_File_preallocate(...) CALLED(MPI_File_preallocate, __VA_ARGS__)
#define MPI_File_read(...) CALLED(MPI_File_read, __VA_ARGS__)
#define MPI_File_read_all(...) CALLED(MPI_File_read_all, __VA_ARGS__)
#define MPI_File_read_all_begin(...) CALLED(MPI_File_read_all_begin, __VA_ARGS__)
#define MPI_File_read_all_end(...) CALLED(MPI_File_read_all_end, __VA_ARGS__)
#define MPI_File_read_at(...) CALLED(MPI_File_read_at, __VA_ARGS__)
#define MPI_File_read_at_all(...) CALLED(MPI_File_read_at_all, __VA_ARGS__)
#define MPI_File_read_at_all_begin(...) CALLED(MPI_File_read_at_all_begin, __VA_ARGS__)
#define MPI_File_read_at_all_end(...) CALLED(MPI_File_read_at_all_end, __VA_ARGS__)
#define MPI_File_read_ordered(...) CALLED(MPI_File_read_ordered, __VA_ARGS__)
#define MPI_File_read_shared(...) CALLED(MPI_File_read_shared, __VA_ARGS__)
#define MPI_File_seek(...) CALLED(MPI_File_seek, __VA_ARGS__)
#define MPI_File_seek_shared(...) CALLED(MPI_File_seek_shared, __VA_ARGS__)
#define MPI_File_set_size(...) CALLED(MPI_File_set_size, __VA_ARGS__)
#define MPI_File_set_view(...) CALLED(MPI_File_set_view, __VA_ARGS__)
#define MPI_File_sync(...) CALLED(MPI_File_sync, __VA_ARGS__)
#define MPI_File_write(...) CALLED(MPI_File_write, __VA_ARGS__)
#define MPI_File_write_all(...) CALLED(MPI_File_write_all, __VA_ARGS__)
#define MPI_File_write_all_begin(...) CALLED(MPI_File_write_all_begin, __VA_ARGS__)
#define MPI_File_write_all_end(...) CALLED(MPI_File_write_all_end, __VA_ARGS__)
#define MPI_File_write_at(...) CALLED(MPI_File_write_at, __VA_ARGS__)
#define MPI_File_write_at_all(...) CALLED(MPI_File_write_at_all, __VA_ARGS__)
#define MPI_File_write_at_all_begin(...) CALLED(MPI_File_write_at_all_begin, __VA_ARGS__)
#define MPI_File_write_at_all_end(...) CALLED(MPI_File_write_at_all_end, __VA_ARGS__)
#define MPI_File_write_ordered(...) CALLED(MPI_File_write_ordered, __VA_ARGS__)
#define MPI_File_write_shared(...) CALLED(MPI_File_write_shared, __VA_ARGS__)
#define MPI_Finalize(...) CALLED(MPI_Finalize, __VA_ARGS__)
#define MPI_Gather(...) CALLED(MPI_Gather, __VA_ARGS__)
#define MPI_Gatherv(...) CALLED(MPI_Gatherv, __VA_ARGS__)
#define MPI_Get(...) CALLED(MPI_Get, __VA_ARGS__)
#define MPI_Get_accumulate(...) CALLED(MPI_Get_accumulate, __VA_ARGS__)
#define MPI_Get_count(...) CALLED(MPI_Get_count, __VA_ARGS__)
#define MPI_Graph_create(...) CALLED(MPI_Graph_create, __VA_ARGS__)
#define MPI_Group_free(...) CALLED(MPI_Group_free, __VA_ARGS__)
#define MPI_Group_incl(...) CALLED(MPI_Group_incl, __VA_ARGS__)
#define MPI_Group_range_incl(...) CALLED(MPI_Group_range_incl, __VA_ARGS__)
#define MPI_Iallgather(...) CALLED(MPI_Iallgather, __VA_ARGS__)
#define MPI_Iallgatherv(...) CALLED(MPI_Iallgatherv, __VA_ARGS__)
#define MPI_Iallreduce(...) CALLED(MPI_Iallreduce, __VA_ARGS__)
#define MPI_Ialltoall(...) CALLED(MPI_Ialltoall, __VA_ARGS__)
#define MPI_Ialltoallv(...) CALLED(MPI_Ialltoallv, __VA_ARGS__)
#define MPI_Ialltoallw(...) CALLED(MPI_Ialltoallw, __VA_ARGS__)
#define MPI_Ibarrier(...) CALLED(MPI_Ibarrier, __VA_ARGS__)
#define MPI_Ibcast(...) CALLED(MPI_Ibcast, __VA_ARGS__)
#define MPI_Ibsend(...) CALLED(MPI_Ibsend, __VA_ARGS__)
#define MPI_Iexscan(...) CALLED(MPI_Iexscan, __VA_ARGS__)
#define MPI_Igather(...) CALLED(MPI_Igather, __VA_ARGS__)
#define MPI_Igatherv(...) CALLED(MPI_Igatherv, __VA_ARGS__)
#define MPI_Improbe(...) CALLED(MPI_Improbe, __VA_ARGS__)
#define MPI_Imrecv(...) CALLED(MPI_Imrecv, __VA_ARGS__)
#define MPI_Ineighbor_allgather(...) CALLED(MPI_Ineighbor_allgather, __VA_ARGS__)
#define MPI_Ineighbor_allgatherv(...) CALLED(MPI_Ineighbor_allgatherv, __VA_ARGS__)
#define MPI_Ineighbor_alltoall(...) CALLED(MPI_Ineighbor_alltoall, __VA_ARGS__)
#define MPI_Ineighbor_alltoallv(...) CALLED(MPI_Ineighbor_alltoallv, __VA_ARGS__)
#define MPI_Ineighbor_alltoallw(...) CALLED(MPI_Ineighbor_alltoallw, __VA_ARGS__)
#define MPI_Init(...) CALLED(MPI_Init, __VA_ARGS__)
#define MPI_Init_thread(...) CALLED(MPI_Init_thread, __VA_ARGS__)
#define MPI_Intercomm_create(...) CALLED(MPI_Intercomm_create, __VA_ARGS__)
#define MPI_Intercomm_merge(...) CALLED(MPI_Intercomm_merge, __VA_ARGS__)
#define MPI_Iprobe(...) CALLED(MPI_Iprobe, __VA_ARGS__)
#define MPI_Irecv(...) CALLED(MPI_Irecv, __VA_ARGS__)
#define MPI_Irecv_c(...) CALLED(MPI_Irecv_c, __VA_ARGS__)
#define MPI_Ireduce(...) CALLED(MPI_Ireduce, __VA_ARGS__)
#define MPI_Ireduce_scatter(...) CALLED(MPI_Ireduce_scatter, __VA_ARGS__)
#define MPI_Ireduce_scatter_block(...) CALLED(MPI_Ireduce_scatter_block, __VA_ARGS__)
#define MPI_Irsend(...) CALLED(MPI_Irsend, __VA_ARGS__)
#define MPI_Iscan(...) CALLED(MPI_Iscan, __VA_ARGS__)
#define MPI_Iscatter(...) CALLED(MPI_Iscatter, __VA_ARGS__)
#define MPI_Iscatterv(...) CALLED(MPI_Iscatterv, __VA_ARGS__)
#define MPI_Isend(...) CALLED(MPI_Isend, __VA_ARGS__)
#define MPI_Isend_c(...) CALLED(MPI_Isend_c, __VA_ARGS__)
#define MPI_Isendrecv(...) CALLED(MPI_Isendrecv, __VA_ARGS__)
#define MPI_Isendrecv_replace(...) CALLED(MPI_Isendrecv_replace, __VA_ARGS__)
#define MPI_Issend(...) CALLED(MPI_Issend, __VA_ARGS__)
#define MPI_Mprobe(...) CALLED(MPI_Mprobe, __VA_ARGS__)
#define MPI_Mrecv(...) CALLED(MPI_Mrecv, __VA_ARGS__)
#define MPI_Neighbor_allgather(...) CALLED(MPI_Neighbor_allgather, __VA_ARGS__)
#define MPI_Neighbor_allgatherv(...) CALLED(MPI_Neighbor_allgatherv, __VA_ARGS__)
#define MPI_Neighbor_alltoall(...) CALLED(MPI_Neighbor_alltoall, __VA_ARGS__)
#define MPI_Neighbor_alltoallv(...) CALLED(MPI_Neighbor_alltoallv, __VA_ARGS__)
#define MPI_Neighbor_alltoallw(...) CALLED(MPI_Neighbor_alltoallw, __VA_ARGS__)
#define MPI_Parrived(...) CALLED(MPI_Parrived, __VA_ARGS__)
#define MPI_Pcontrol(...) CALLED(MPI_Pcontrol, __VA_ARGS__)
#define MPI_Pready(...) CALLED(MPI_Pready, __VA_ARGS__)
#define MPI_Pready_list(...) CALLED(MPI_Pready_list, __VA_ARGS__)
#define MPI_Pready_range(...) CALLED(MPI_Pready_range, __VA_ARGS__)
#define MPI_Precv_init(...) CALLED(MPI_Precv_init, __VA_ARGS__)
#define MPI_Probe(...) CALLED(MPI_Probe, __VA_ARGS__)
#define MPI_Psend_init(...) CALLED(MPI_Psend_init, __VA_ARGS__)
#define MPI_Put(...) CALLED(MPI_Put, __VA_ARGS__)
#define MPI_Raccumulate(...) CALLED(MPI_Raccumulate, __VA_ARGS__)
#define MPI_Recv(...) CALLED(MPI_Recv, __VA_ARGS__)
#define MPI_Recv_c(...) CALLED(MPI_Recv_c, __VA_ARGS__)
#define MPI_Recv_init(...) CALLED(MPI_Recv_init, __VA_ARGS__)
#define MPI_Reduce(...) CALLED(MPI_Reduce, __VA_ARGS__)
#define MPI_Reduce_local(...) CALLED(MPI_Reduce_local, __VA_ARGS__)
#define MPI_Reduce_scatter(...) CALLED(MPI_Reduce_scatter, __VA_ARGS__)
#define MPI_Reduce_scatter_block(...) CALLED(MPI_Reduce_scatter_block, __VA_ARGS__)
#define MPI_Request_free(...) CALLED(MPI_Request_free, __VA_ARGS__)
#define MPI_Request_get_status(...) CALLED(MPI_Request_get_status, __VA_ARGS__)
#define MPI_Rget(...) CALLED(MPI_Rget, __VA_ARGS__)
#define MPI_Rget_accumulate(...) CALLED(MPI_Rget_accumulate, __VA_ARGS__)
#define MPI_Rput(...) CALLED(MPI_Rput, __VA_ARGS__)
#define MPI_Rsend(...) CALLED(MPI_Rsend, __VA_ARGS__)
#define MPI_Rsend_init(...) CALLED(MPI_Rsend_init, __VA_ARGS__)
#define MPI_Scan(...) CALLED(MPI_Scan, __VA_ARGS__)
#define MPI_Scatter(...) CALLED(MPI_Scatter, __VA_ARGS__)
#define MPI_Scatterv(...) CALLED(MPI_Scatterv, __VA_ARGS__)
#define MPI_Send(...) CALLED(MPI_Send, __VA_ARGS__)
#define MPI_Send_c(...) CALLED(MPI_Send_c, __VA_ARGS__)
#define MPI_Send_init(...) CALLED(MPI_Send_init, __VA_ARGS__)
#define MPI_Sendrecv(...) CALLED(MPI_Sendrecv, __VA_ARGS__)
#define MPI_Sendrecv_replace(...) CALLED(MPI_Sendrecv_replace, __VA_ARGS__)
#define MPI_Ssend(...) CALLED(MPI_Ssend, __VA_ARGS__)
#define MPI_Ssend_init(...) CALLED(MPI_Ssend_init, __VA_ARGS__)
#define MPI_Start(...) CALLED(MPI_Start, __VA_ARGS__)
#define MPI_Startall(...) CALLED(MPI_Startall, __VA_ARGS__)
#define MPI_Test(...) CALLED(MPI_Test, __VA_ARGS__)
#define MPI_Test_cancelled(...) CALLED(MPI_Test_cancelled, __VA_ARGS__)
#define MPI_Testall(...) CALLED(MPI_Testall, __VA_ARGS__)
#define MPI_Testany(...) CALLED(MPI_Testany, __VA_ARGS__)
#define MPI_Testsome(...) CALLED(MPI_Testsome, __VA_ARGS__)
#define MPI_Type_commit(...) CALLED(MPI_Type_commit, __VA_ARGS__)
#define MPI_Type_free(...) CALLED(MPI_Type_free, __VA_ARGS__)
#define MPI_Type_vector(...) CALLED(MPI_Type_vector, __VA_ARGS__)
#define MPI_Wait(...) CALLED(MPI_Wait, __VA_ARGS__)
#define MPI_Waitall(...) CALLED(MPI_Waitall, __VA_ARGS__)
#define MPI_Waitany(...) CALLED(MPI_Waitany, __VA_ARGS__)
#define MPI_Waitsome(...) CALLED(MPI_Waitsome, __VA_ARGS__)
#define MPI_Win_allocate(...) CALLED(MPI_Win_allocate, __VA_ARGS__)
#define MPI_Win_allocate_shared(...) CALLED(MPI_Win_allocate_shared, __VA_ARGS__)
#define MPI_Win_attach(...) CALLED(MPI_Win_attach, __VA_ARGS__)
#define MPI_Win_complete(...) CALLED(MPI_Win_complete, __VA_ARGS__)
#define MPI_Win_create(...) CALLED(MPI_Win_create, __VA_ARGS__)
#define MPI_Win_create_dynamic(...) CALLED(MPI_Win_create_dynamic, __VA_ARGS__)
#define MPI_Win_detach(...) CALLED(MPI_Win_detach, __VA_ARGS__)
#define MPI_Win_fence(...) CALLED(MPI_Win_fence, __VA_ARGS__)
#define MPI_Win_flush(...) CALLED(MPI_Win_flush, __VA_ARGS__)
#define MPI_Win_flush_all(...) CALLED(MPI_Win_flush_all, __VA_ARGS__)
#define MPI_Win_flush_local(...) CALLED(MPI_Win_flush_local, __VA_ARGS__)
#define MPI_Win_flush_local_all(...) CALLED(MPI_Win_flush_local_all, __VA_ARGS__)
#define MPI_Win_free(...) CALLED(MPI_Win_free, __VA_ARGS__)
#define MPI_Win_lock(...) CALLED(MPI_Win_lock, __VA_ARGS__)
#define MPI_Win_lock_all(...) CALLED(MPI_Win_lock_all, __VA_ARGS__)
#define MPI_Win_post(...) CALLED(MPI_Win_post, __VA_ARGS__)
#define MPI_Win_start(...) CALLED(MPI_Win_start, __VA_ARGS__)
#define MPI_Win_sync(...) CALLED(MPI_Win_sync, __VA_ARGS__)
#define MPI_Win_test(...) CALLED(MPI_Win_test, __VA_ARGS__)
#define MPI_Win_unlock(...) CALLED(MPI_Win_unlock, __VA_ARGS__)
#define MPI_Win_unlock_all(...) CALLED(MPI_Win_unlock_all, __VA_ARGS__)
#define MPI_Win_wait(...) CALLED(MPI_Win_wait, __VA_ARGS__)

#endif
