// A timer made by timer_create, there for a while: no cut can lie within that time.
// cut: middle
// refuses: it has timers made by timer_create
#include "state.h"
#include <signal.h>
#include <time.h>

int main(void) {
    start();
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_NONE};
    struct itimerspec time = {.it_value = {.tv_sec = 1000}}, left;
    for (int i = 0; i < 3; i++) beat();
    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 && timer_settime(timer, 0, &time, NULL) == 0);
    for (int i = 0; i < 2; i++) beat();
    CHECK(timer_gettime(timer, &left) == 0 && left.it_value.tv_sec > 0 && timer_delete(timer) == 0);
    for (int i = 0; i < 3; i++) beat();
    say("deleted");
    return done("timer_open");
}
