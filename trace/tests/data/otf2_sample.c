/* Writes a small OTF2 archive of two ranks to the folder argv[1]: what the test of the importer reads. */
#include <otf2/otf2.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                                       \
    do {                                                                  \
        OTF2_ErrorCode code_ = (call);                                    \
        if (code_ != OTF2_SUCCESS) {                                      \
            fprintf(stderr, "%s: %s\n", #call, OTF2_Error_GetName(code_)); \
            exit(1);                                                      \
        }                                                                 \
    } while (0)

enum { INIT, SEND, RECV, ISEND, IRECV, WAITALL, ALLREDUCE, FINALIZE, MAIN, REGIONS };
static const char *names[REGIONS] = {"MPI_Init",  "MPI_Send",      "MPI_Recv",     "MPI_Isend", "MPI_Irecv",
                                     "mpi_waitall_", "MPI_Allreduce", "MPI_Finalize", "main"};
enum { EMPTY = REGIONS, NODE, LOCATION, WORLD, PAIR, STRINGS };

static OTF2_FlushType pre_flush(void *data, OTF2_FileType type, OTF2_LocationRef location, void *caller, bool final) {
    return OTF2_FLUSH;
}

static OTF2_TimeStamp post_flush(void *data, OTF2_FileType type, OTF2_LocationRef location) { return 0; }

static OTF2_FlushCallbacks callbacks = {.otf2_pre_flush = pre_flush, .otf2_post_flush = post_flush};

static void rank_events(OTF2_Archive *archive, uint64_t rank) {
    OTF2_EvtWriter *w = OTF2_Archive_GetEvtWriter(archive, rank);
    OTF2_TimeStamp t = 1000 + 3 * rank;
    uint32_t peer = 1 - (uint32_t)rank;
#define IN(region) CHECK(OTF2_EvtWriter_Enter(w, NULL, t += 10, region))
#define OUT(region) CHECK(OTF2_EvtWriter_Leave(w, NULL, t += 10, region))
    IN(MAIN);
    IN(INIT);
    OUT(INIT);
    for (int i = 0; i < 3; i++) {
        IN(IRECV);
        CHECK(OTF2_EvtWriter_MpiIrecvRequest(w, NULL, t, 100 + 2 * i));
        OUT(IRECV);
        IN(ISEND);
        CHECK(OTF2_EvtWriter_MpiIsend(w, NULL, t, peer, 0, 7, 800, 101 + 2 * i));
        OUT(ISEND);
        IN(WAITALL);
        CHECK(OTF2_EvtWriter_MpiIsendComplete(w, NULL, t, 101 + 2 * i));
        CHECK(OTF2_EvtWriter_MpiIrecv(w, NULL, t + 1, peer, 0, 7, 800, 100 + 2 * i));
        OUT(WAITALL);
        IN(ALLREDUCE);
        CHECK(OTF2_EvtWriter_MpiCollectiveBegin(w, NULL, t));
        CHECK(OTF2_EvtWriter_MpiCollectiveEnd(w, NULL, t + 1, OTF2_COLLECTIVE_OP_ALLREDUCE, 0, OTF2_UNDEFINED_UINT32, 16, 16));
        OUT(ALLREDUCE);
    }
    /* On the communicator with the order turned round: rank 0 of it is world rank 1. */
    if (rank == 0) {
        IN(SEND);
        CHECK(OTF2_EvtWriter_MpiSend(w, NULL, t, 0, 1, 5, 16));
        OUT(SEND);
    } else {
        IN(RECV);
        CHECK(OTF2_EvtWriter_MpiRecv(w, NULL, t, 1, 1, 5, 16));
        OUT(RECV);
    }
    /* Outside of any region of MPI. */
    if (rank == 0)
        CHECK(OTF2_EvtWriter_MpiSend(w, NULL, t += 10, 1, 0, 6, 4));
    else
        CHECK(OTF2_EvtWriter_MpiRecv(w, NULL, t += 10, 0, 0, 6, 4));
    IN(FINALIZE);
    OUT(FINALIZE);
    OUT(MAIN);
    CHECK(OTF2_Archive_CloseEvtWriter(archive, w));
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    OTF2_Archive *archive = OTF2_Archive_Open(argv[1], "sample", OTF2_FILEMODE_WRITE, 1024 * 1024, 4 * 1024 * 1024,
                                              OTF2_SUBSTRATE_POSIX, OTF2_COMPRESSION_NONE);
    if (!archive) return 1;
    CHECK(OTF2_Archive_SetFlushCallbacks(archive, &callbacks, NULL));
    CHECK(OTF2_Archive_SetSerialCollectiveCallbacks(archive));
    CHECK(OTF2_Archive_OpenEvtFiles(archive));
    for (uint64_t rank = 0; rank < 2; rank++) rank_events(archive, rank);
    CHECK(OTF2_Archive_CloseEvtFiles(archive));
    CHECK(OTF2_Archive_OpenDefFiles(archive));
    for (uint64_t rank = 0; rank < 2; rank++) {
        OTF2_DefWriter *d = OTF2_Archive_GetDefWriter(archive, rank);
        CHECK(OTF2_Archive_CloseDefWriter(archive, d));
    }
    CHECK(OTF2_Archive_CloseDefFiles(archive));
    OTF2_GlobalDefWriter *g = OTF2_Archive_GetGlobalDefWriter(archive);
    /* A tick is 100 ns. */
    CHECK(OTF2_GlobalDefWriter_WriteClockProperties(g, 10000000, 1000, 10000, OTF2_UNDEFINED_TIMESTAMP));
    for (uint32_t i = 0; i < REGIONS; i++) CHECK(OTF2_GlobalDefWriter_WriteString(g, i, names[i]));
    CHECK(OTF2_GlobalDefWriter_WriteString(g, EMPTY, ""));
    CHECK(OTF2_GlobalDefWriter_WriteString(g, NODE, "node"));
    CHECK(OTF2_GlobalDefWriter_WriteString(g, LOCATION, "Master thread"));
    CHECK(OTF2_GlobalDefWriter_WriteString(g, WORLD, "MPI_COMM_WORLD"));
    CHECK(OTF2_GlobalDefWriter_WriteString(g, PAIR, "turned"));
    for (uint32_t i = 0; i < REGIONS; i++)
        CHECK(OTF2_GlobalDefWriter_WriteRegion(g, i, i, i, EMPTY, OTF2_REGION_ROLE_FUNCTION,
                                               i == MAIN ? OTF2_PARADIGM_USER : OTF2_PARADIGM_MPI, OTF2_REGION_FLAG_NONE,
                                               EMPTY, 0, 0));
    CHECK(OTF2_GlobalDefWriter_WriteSystemTreeNode(g, 0, NODE, NODE, OTF2_UNDEFINED_SYSTEM_TREE_NODE));
    for (uint64_t rank = 0; rank < 2; rank++) {
        CHECK(OTF2_GlobalDefWriter_WriteLocationGroup(g, rank, LOCATION, OTF2_LOCATION_GROUP_TYPE_PROCESS, 0,
                                                      OTF2_UNDEFINED_LOCATION_GROUP));
        CHECK(OTF2_GlobalDefWriter_WriteLocation(g, rank, LOCATION, OTF2_LOCATION_TYPE_CPU_THREAD, 64, rank));
    }
    uint64_t world[2] = {0, 1}, turned[2] = {1, 0};
    CHECK(OTF2_GlobalDefWriter_WriteGroup(g, 0, EMPTY, OTF2_GROUP_TYPE_COMM_LOCATIONS, OTF2_PARADIGM_MPI,
                                          OTF2_GROUP_FLAG_NONE, 2, world));
    CHECK(OTF2_GlobalDefWriter_WriteGroup(g, 1, WORLD, OTF2_GROUP_TYPE_COMM_GROUP, OTF2_PARADIGM_MPI,
                                          OTF2_GROUP_FLAG_NONE, 2, world));
    CHECK(OTF2_GlobalDefWriter_WriteGroup(g, 2, PAIR, OTF2_GROUP_TYPE_COMM_GROUP, OTF2_PARADIGM_MPI,
                                          OTF2_GROUP_FLAG_NONE, 2, turned));
    CHECK(OTF2_GlobalDefWriter_WriteComm(g, 0, WORLD, 1, OTF2_UNDEFINED_COMM, OTF2_COMM_FLAG_NONE));
    CHECK(OTF2_GlobalDefWriter_WriteComm(g, 1, PAIR, 2, 0, OTF2_COMM_FLAG_NONE));
    CHECK(OTF2_Archive_Close(archive));
    return 0;
}
