// Numbers of files: the lowest that is free, numbers chosen by dup2, holes, the three standard ones.
#include "state.h"
#include <fcntl.h>
#include <unistd.h>

int main(void) {
    start();
    char c;
    int a = open("/etc/passwd", O_RDONLY), b = open("/etc/hostname", O_RDONLY), high = dup2(a, 200);
    CHECK(a >= 0 && b >= 0 && high == 200 && read(a, &c, 1) == 1);
    close(b);
    for (int i = 0; i < 6; i++) {
        beat();
        CHECK(lseek(high, 0, SEEK_CUR) == 1 && (fcntl(high, F_GETFL) & O_ACCMODE) == O_RDONLY);
        CHECK(fcntl(1, F_GETFL) != -1 && fcntl(2, F_GETFL) != -1);
    }
    int again = open("/etc/hostname", O_RDONLY);
    CHECK(again != a && again != high && again > 2);
    CHECK(fcntl(a, F_DUPFD, 300) == 300);
    beat();
    CHECK(lseek(300, 0, SEEK_CUR) == 1);
    close(again), close(a), close(300);
    beat();
    CHECK(lseek(high, 0, SEEK_END) > 1);
    close(high);
    say("high %d", high);
    return done("file_numbers");
}
