/* An MPI library that does nothing, with the binary interface of MPICH: what a traced call costs beyond the call. */
#include <string.h>

#define BOTH(name, arguments, body)                                                                                    \
    int P##name arguments { body return 0; }                                                                           \
    int name arguments __attribute__((weak, alias("P" #name)));

BOTH(MPI_Init, (int *argc, char ***argv), (void)argc; (void)argv;)
BOTH(MPI_Finalize, (void), )
BOTH(MPI_Query_thread, (int *level), *level = 0;)
BOTH(MPI_Comm_rank, (int comm, int *rank), (void)comm; *rank = 0;)
BOTH(MPI_Comm_size, (int comm, int *size), (void)comm; *size = 2;)
BOTH(MPI_Comm_test_inter, (int comm, int *flag), (void)comm; *flag = 0;)
BOTH(MPI_Comm_group, (int comm, int *group), *group = comm;)
BOTH(MPI_Group_size, (int group, int *size), *size = group == 0x44000001 ? 1 : 2;)
BOTH(MPI_Group_free, (int *group), *group = 0;)
BOTH(MPI_Group_translate_ranks, (int a, int n, int *from, int b, int *to), (void)a; (void)b; memcpy(to, from, 4UL * n);)
BOTH(MPI_Get_library_version, (char *text, int *length), strcpy(text, "stub"); *length = 4;)
BOTH(MPI_Type_size, (int type, int *size), (void)type; *size = 4;)
BOTH(MPI_Send, (const void *buffer, int count, int type, int dest, int tag, int comm),
     (void)buffer; (void)count; (void)type; (void)dest; (void)tag; (void)comm;)
BOTH(MPI_Allreduce, (const void *out, void *in, int count, int type, int op, int comm),
     (void)out; (void)in; (void)count; (void)type; (void)op; (void)comm;)
BOTH(MPI_Irecv, (void *buffer, int count, int type, int source, int tag, int comm, int *request),
     (void)buffer; (void)count; (void)type; (void)source; (void)tag; (void)comm; *request = 0x98000000;)
BOTH(MPI_Wait, (int *request, int *status), *request = 0x2c000000; if (status != (int *)1) {
    status[0] = 4; status[1] = 0; status[2] = 1; status[3] = 7; status[4] = 0;
})
/* Named so that the interface can be told. */
int MPIR_Dup_fn(void) { return 0; }
