// Clocks: MPI's, the system's and the calendar's never go back and never leap.
#include "state.h"
#include <sys/time.h>
#include <time.h>

int main(void) {
    start();
    double from = MPI_Wtime(), last = from;
    struct timespec was, now;
    struct timeval day_was, day;
    clock_gettime(CLOCK_MONOTONIC, &was);
    gettimeofday(&day_was, NULL);
    time_t calendar = time(NULL);
    for (int i = 0; i < 8; i++) {
        beat();
        double t = MPI_Wtime();
        clock_gettime(CLOCK_MONOTONIC, &now);
        gettimeofday(&day, NULL);
        CHECK(t >= last && t - from < 3600);
        CHECK(now.tv_sec > was.tv_sec || (now.tv_sec == was.tv_sec && now.tv_nsec >= was.tv_nsec));
        CHECK(day.tv_sec >= day_was.tv_sec - 1 && time(NULL) >= calendar && day.tv_sec - day_was.tv_sec < 86400);
        last = t, was = now;
    }
    CHECK(MPI_Wtick() > 0 && MPI_Wtick() < 1);
    say("forward");
    return done("wtime");
}
