// Groups by every constructor, freed parents, ranks translated between them.
// ranks: 4
#include "state.h"

int main(void) {
    start();
    MPI_Group world, first, last, both, same, rest, empty, every, back, even;
    int a[2] = {0, 1}, b[2] = {1, 3}, range[1][3] = {{0, 3, 2}}, n, result, in[3] = {0, 1, 2}, out[3];
    int down[1][3] = {{3, 0, -1}}, odd[1][3] = {{3, 1, -2}};
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 2, a, &first);
    MPI_Group_excl(world, 2, a, &last);
    beat();
    MPI_Group_union(last, first, &both);
    MPI_Group_range_excl(world, 1, range, &every);
    MPI_Group_incl(world, 2, b, &same);
    beat();
    MPI_Group_range_incl(world, 1, down, &back);
    MPI_Group_range_excl(world, 1, odd, &even);
    beat();
    MPI_Group_difference(world, same, &rest);
    MPI_Group_intersection(first, last, &empty);
    beat();
    CHECK(empty == MPI_GROUP_EMPTY || (MPI_Group_size(empty, &n), n == 0));
    MPI_Group_compare(every, same, &result);
    CHECK(result == MPI_IDENT);
    MPI_Group_compare(both, world, &result);
    CHECK(result == MPI_SIMILAR);
    MPI_Group_free(&last);
    MPI_Group_free(&world);
    for (int i = 0; i < 3; i++) beat();
    MPI_Group_translate_ranks(both, 3, in, rest, out);
    CHECK(out[0] == 1 && out[1] == MPI_UNDEFINED && out[2] == 0);
    MPI_Group_rank(both, &n);
    CHECK(n == (rank + 2) % 4);
    MPI_Group_translate_ranks(back, 3, in, both, out);
    CHECK(out[0] == 1 && out[1] == 0 && out[2] == 3);
    MPI_Group_size(even, &n);
    MPI_Group_translate_ranks(even, 2, in, back, out);
    CHECK(n == 2 && out[0] == 3 && out[1] == 1);
    MPI_Group_rank(both, &n);
    MPI_Group_free(&back), MPI_Group_free(&even);
    MPI_Group_free(&first), MPI_Group_free(&both), MPI_Group_free(&same), MPI_Group_free(&rest), MPI_Group_free(&every);
    if (empty != MPI_GROUP_EMPTY) MPI_Group_free(&empty);
    for (int i = 0; i < 2; i++) beat();
    say("as %d", n);
    return done("groups");
}
