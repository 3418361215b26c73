// Procedures for large counts and others of MPI 4, where the MPI has them: the program goes on where they are missing. The
// same by the plain ones elsewhere.
#include "state.h"

#if MPI_VERSION >= 4
#define WIDE(name) name##_c
typedef MPI_Count Count, Place;
typedef MPI_Aint Displacement;
#else
#define WIDE(name) name
typedef int Count, Displacement;
typedef MPI_Aint Place;
#endif

static MPI_Datatype record, resized;
static int i4[4];
static double d;

static void types(void) {
    MPI_Datatype parts[2] = {MPI_DOUBLE, MPI_INT}, holes;
    Count lengths[2] = {1, 4}, two[2] = {2, 2}, numbers, others, datatypes;
    Place places[2], apart[2] = {0, 16}, lb, extent;
    MPI_Aint at;
    int combiner;
    MPI_Get_address(&d, &at), places[0] = at;
    MPI_Get_address(i4, &at), places[1] = at;
    WIDE(MPI_Type_create_struct)(2, lengths, places, parts, &record);
    WIDE(MPI_Type_create_hindexed)(2, two, apart, MPI_INT, &holes);
    WIDE(MPI_Type_create_resized)(holes, -4, 40, &resized);
    MPI_Type_free(&holes);
    MPI_Type_commit(&record);
    WIDE(MPI_Type_get_extent)(resized, &lb, &extent);
    WIDE(MPI_Type_size)(record, &numbers);
    CHECK(lb == -4 && extent == 40 && numbers == 24);
#if MPI_VERSION >= 4
    MPI_Count large = -1;
    MPI_Type_get_envelope_c(MPI_INT, &numbers, &others, &large, &datatypes, &combiner);
    CHECK(large == 0);
#else
    MPI_Type_get_envelope(MPI_INT, &numbers, &others, &datatypes, &combiner);
#endif
    CHECK(numbers == 0 && others == 0 && datatypes == 0 && combiner == MPI_COMBINER_NAMED);
}

static void types_again(void) {
    MPI_Type_free(&record);
    MPI_Type_free(&resized);
    types();
}

static void messages(int tag) {
    MPI_Status status;
    Count n;
    int source, few[2];
    MPI_Send(MPI_BOTTOM, 1, record, after, tag, MPI_COMM_WORLD);
    beat();
    fill(i4, 4, 77);
    WIDE(MPI_Recv)(MPI_BOTTOM, 1, record, before, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    WIDE(MPI_Get_count)(&status, MPI_BYTE, &n);
    source = status.MPI_SOURCE;
#if MPI_VERSION > 4 || MPI_VERSION == 4 && MPI_SUBVERSION > 0
    MPI_Status_get_source(&status, &source);
    MPI_Status_set_tag(&status, status.MPI_TAG + 5);
    CHECK(status.MPI_TAG == tag + 5 && status.MPI_SOURCE == before);
#endif
    CHECK(source == before && n == 24 && d == before + 0.25 && filled(i4, 4, before));
    d = rank + 0.25;
    fill(i4, 4, rank);
    // Too long for its buffer: it is received all the same.
    MPI_Send(i4, 4, MPI_INT, after, tag, MPI_COMM_WORLD);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int class, code = WIDE(MPI_Recv)(few, 2, MPI_INT, before, tag, MPI_COMM_WORLD, &status);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Error_class(code, &class);
    CHECK(class == MPI_ERR_TRUNCATE && status.MPI_SOURCE == before && status.MPI_TAG == tag);
}

// The position goes on by what was packed, wherever between two pieces the program is cut.
static void packing(void) {
    char buffer[100];
    int back[4] = {0};
    Count at = 0;
    Place place = 0;
    for (int i = 0; i < 4; i++) {
        WIDE(MPI_Pack)(&i4[i], 1, MPI_INT, buffer, sizeof buffer, &at, MPI_COMM_WORLD);
        CHECK(at == 4 * (i + 1));
        beat();
    }
    at = 0;
    for (int i = 0; i < 2; i++) {
        WIDE(MPI_Unpack)(buffer, sizeof buffer, &at, &back[2 * i], 2, MPI_INT, MPI_COMM_WORLD);
        CHECK(at == 8 * (i + 1));
    }
    CHECK(filled(back, 4, rank));
    WIDE(MPI_Pack_external)("external32", i4, 3, MPI_INT, buffer, sizeof buffer, &place);
    CHECK(place == 12);
}

// Counts and places of all ranks; at others than the root they are no addresses.
static void collectives(void) {
    Count counts[16];
    Displacement places[16];
    int all[32] = {0}, out[32] = {0}, root = rank == 0;
    CHECK(size <= 16);
    for (int i = 0; i < size; i++) counts[i] = 1, places[i] = 2 * i, out[2 * i] = 100 * rank + i;
    WIDE(MPI_Gatherv)(i4, 1, MPI_INT, all, root ? counts : (void *)8192, root ? places : (void *)8192, MPI_INT, 0, MPI_COMM_WORLD);
    for (int i = 0; i < size && root; i++) CHECK(filled(&all[2 * i], 1, i));
    WIDE(MPI_Alltoallv)(out, counts, places, MPI_INT, all, counts, places, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < size; i++) CHECK(all[2 * i] == 100 * i + rank);
}

static void window(void) {
    int all[16] = {0};
    MPI_Win window;
    MPI_Win_create(all, sizeof all, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_fence(0, window);
    beat();
    WIDE(MPI_Put)(i4, 4, MPI_INT, after, 8, 4, MPI_INT, window);
    MPI_Win_fence(0, window);
    CHECK(filled(&all[8], 4, before));
    MPI_Win_free(&window);
}

static void text(MPI_Info info) {
    char value[20] = "blue";
    int flag;
#if MPI_VERSION >= 4
    int room = 3;
    MPI_Info_get_string(info, "colour", &room, value, &flag);
    CHECK(flag && room == 5 && strcmp(value, "bl") == 0);
    MPI_Info_get_string(info, "colour", &room, value, &flag);
    CHECK(flag && room == 5);
    room = 0;
    MPI_Info_get_string(info, "colour", &room, value, &flag);
    CHECK(flag && room == 5);
    MPI_Info_get_string(info, "sound", &room, value, &flag);
    CHECK(!flag && room == 5);
#else
    MPI_Info_get(info, "colour", 19, value, &flag);
#endif
    CHECK(strcmp(value, "blue") == 0);
}

int main(void) {
    MPI_Info info;
    start();
    MPI_Info_create(&info);
    MPI_Info_set(info, "colour", "blue");
    d = rank + 0.25;
    fill(i4, 4, rank);
    types();
    for (int i = 0; i < 2; i++) {
        messages(i);
        types_again();
        packing();
        collectives();
        window();
        text(info);
    }
    say("%.2f %d", d, i4[3]);
    MPI_Info_free(&info);
    MPI_Type_free(&record);
    MPI_Type_free(&resized);
    return done("large_counts");
}
