// Clocks: MPI's, the system's and the calendar's never go back, and MPI's does not leap: it has not passed more time than the
// system's, which goes on while an image lies on the disk.
#include "state.h"
#include <sys/time.h>
#include <time.h>

int main(void) {
    start();
    struct timespec begun, was, now;
    struct timeval day_was, day;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    was = begun;
    double from = MPI_Wtime(), last = from;
    gettimeofday(&day_was, NULL);
    time_t calendar = time(NULL);
    for (int i = 0; i < 8; i++) {
        beat();
        double t = MPI_Wtime();
        clock_gettime(CLOCK_MONOTONIC, &now);
        gettimeofday(&day, NULL);
        double passed = (double)(now.tv_sec - begun.tv_sec) + 1e-9 * (double)(now.tv_nsec - begun.tv_nsec);
        CHECK(t >= last && t - from <= 1.01 * passed + 0.001);
        CHECK(now.tv_sec > was.tv_sec || (now.tv_sec == was.tv_sec && now.tv_nsec >= was.tv_nsec));
        CHECK(day.tv_sec >= day_was.tv_sec - 1 && time(NULL) >= calendar && day.tv_sec - day_was.tv_sec < 86400);
        last = t, was = now;
    }
    CHECK(MPI_Wtick() > 0 && MPI_Wtick() < 1);
    say("forward");
    return done("wtime");
}
