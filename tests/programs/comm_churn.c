// A thousand communicators made and freed, most of one rank and some of all, with a few that stay.
// stride: 150
// ranks: 2
#include "state.h"

int main(void) {
    start();
    MPI_Comm kept[10], copy;
    int n = 0;
    for (int i = 0; i < 1000; i++) {
        MPI_Comm_dup(i % 10 ? MPI_COMM_SELF : i % 3 && n ? kept[n - 1] : MPI_COMM_WORLD, &copy);
        if (i % 100 == 50)
            kept[n++] = copy;
        else
            MPI_Comm_free(&copy);
    }
    for (int i = 0; i < n; i++) {
        ring(kept[i]);
        CHECK(total(kept[i], i) == size * i);
        MPI_Comm_free(&kept[i]);
    }
    say("kept %d", n);
    return done("comm_churn");
}
