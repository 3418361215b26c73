// Semaphores, and then a queue of messages, of System V for a while: no cut can lie within that time.
// cut: middle
// refuses: of System V
#include "state.h"
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>

int main(void) {
    start();
    struct { long type; char text[8]; } sent = {1, "hey"}, got;
    for (int i = 0; i < 3; i++) beat();
    int semaphores = semget(IPC_PRIVATE, 1, 0600);
    CHECK(semaphores >= 0 && semctl(semaphores, 0, SETVAL, 3) == 0);
    beat();
    CHECK(semctl(semaphores, 0, GETVAL) == 3 && semctl(semaphores, 0, IPC_RMID) == 0);
    int queue = msgget(IPC_PRIVATE, 0600);
    CHECK(queue >= 0 && msgsnd(queue, &sent, sizeof sent.text, 0) == 0);
    beat();
    CHECK(msgrcv(queue, &got, sizeof got.text, 1, 0) == sizeof got.text && !strcmp(got.text, "hey"));
    CHECK(msgctl(queue, IPC_RMID, NULL) == 0);
    for (int i = 0; i < 3; i++) beat();
    say("heard");
    return done("system_v_open");
}
