// Every kind of named type, in flight: integers, reals, pairs, of fixed width, of Fortran.
#include "state.h"
#include <stdint.h>

#define CASE(ctype, mpitype, value)                                                                                    \
    do {                                                                                                               \
        ctype out = (ctype)(value), in;                                                                                \
        int bytes;                                                                                                     \
        memset(&in, 0, sizeof in);                                                                                     \
        MPI_Type_size(mpitype, &bytes);                                                                                \
        CHECK(bytes == (int)sizeof out);                                                                               \
        MPI_Send(&out, 1, mpitype, after, 0, MPI_COMM_WORLD);                                                          \
        meet();                                                                                                        \
        MPI_Recv(&in, 1, mpitype, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);                                       \
        CHECK(in == out);                                                                                              \
    } while (0)

int main(void) {
    start();
    CASE(signed char, MPI_SIGNED_CHAR, -7);
    CASE(unsigned short, MPI_UNSIGNED_SHORT, 60000);
    CASE(long, MPI_LONG, -1L << 40);
    CASE(float, MPI_FLOAT, 1.5f);
    CASE(long double, MPI_LONG_DOUBLE, 1.25L);
    CASE(uint8_t, MPI_UINT8_T, 200);
    CASE(int64_t, MPI_INT64_T, INT64_MIN);
    CASE(_Bool, MPI_C_BOOL, 1);
    CASE(MPI_Aint, MPI_AINT, 1L << 45);
    CASE(MPI_Offset, MPI_OFFSET, 77);
    CASE(double, MPI_DOUBLE_PRECISION, 0.125);
    CASE(double _Complex, MPI_C_DOUBLE_COMPLEX, 2.0);
    CASE(wchar_t, MPI_WCHAR, L'x');
    // All others of C, without holes.
    MPI_Datatype types[] = {MPI_CHAR,     MPI_UNSIGNED_CHAR,   MPI_BYTE,   MPI_SHORT,           MPI_INT,
                            MPI_UNSIGNED, MPI_UNSIGNED_LONG,   MPI_DOUBLE, MPI_LONG_LONG,       MPI_UNSIGNED_LONG_LONG,
                            MPI_INT8_T,   MPI_INT16_T,         MPI_INT32_T, MPI_UINT16_T,       MPI_UINT32_T,
                            MPI_UINT64_T, MPI_C_FLOAT_COMPLEX, MPI_COUNT,  MPI_2INT,            MPI_FLOAT_INT,
                            MPI_LONG_INT, MPI_DOUBLE_INT,      MPI_PACKED, MPI_C_LONG_DOUBLE_COMPLEX};
    int sizes[] = {1, 1, 1, 2, 4, 4, 8, 8, 8, 8, 1, 2, 4, 2, 4, 8, 8, 8, 8, 8, 12, 12, 1, 32};
    enum { TYPES = sizeof sizes / sizeof *sizes };
    for (int i = 0; i < TYPES; i++) {
        char out[32] = {(char)rank, (char)i, 7, (char)(rank + i)};
        MPI_Send(out, 1, types[i], after, i, MPI_COMM_WORLD);
    }
    beat();
    for (int i = 0; i < TYPES; i++) {
        char in[32] = {0}, expected[32] = {(char)before, (char)i, 7, (char)(before + i)};
        int bytes;
        MPI_Type_size(types[i], &bytes);
        MPI_Recv(in, 1, types[i], before, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(bytes == sizes[i] && !memcmp(in, expected, (size_t)bytes));
    }
    struct {
        double value;
        int at;
    } own = {rank % 2 ? 9.0 : 1.0, rank}, best;
    MPI_Allreduce(&own, &best, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
    CHECK(best.value == 9.0 && best.at == 1);
    beat();
    say("most at %d", best.at);
    return done("type_named");
}
