// Standard output opened by its names, as programs with an option for a file of results are told to.
#include "state.h"
#include <fcntl.h>
#include <unistd.h>

int main(void) {
    start();
    beat();
    FILE *named = fopen("/dev/stdout", "a");
    int number = open("/proc/self/fd/1", O_WRONLY);
    CHECK(named && number >= 0);
    for (int i = 0; i < 4; i++) beat();
    int result = done("output_named");
    if (rank == 0) {
        fprintf(named, "by its name\n");
        fflush(named);
        dprintf(number, "by its number\n");
    }
    fclose(named);
    close(number);
    return result;
}
