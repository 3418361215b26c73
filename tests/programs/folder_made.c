// Folders that the program makes, fills, lists, walks by descriptors, renames and removes, as the kernel has them: one with files
// in it is not removed, one that is made again is empty.
#define _GNU_SOURCE
#include "state.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[40], moved[40], spare[40], name[100];
static struct stat facts;

static const char *in(const char *above, const char *file) {
    sprintf(name, "%s/%s", above, file);
    return name;
}

static void put(int at, const char *file, const char *text) {
    int out = openat(at, file, O_WRONLY | O_CREAT | O_EXCL, 0600);
    CHECK(out >= 0 && write(out, text, strlen(text)) == (ssize_t)strlen(text) && close(out) == 0);
}

static int holds(int at, const char *file, const char *text) {
    char found[16] = "";
    int from = openat(at, file, O_RDONLY);
    return from >= 0 && read(from, found, sizeof found - 1) == (ssize_t)strlen(text) && !strcmp(found, text) && close(from) == 0;
}

static int listed(const char *path) {
    DIR *list = opendir(path);
    int count = -2;
    CHECK(list);
    while (readdir(list)) count++;
    CHECK(closedir(list) == 0);
    return count;
}

static int ends(const char *path, const char *with) {
    return strlen(path) > strlen(with) && !strcmp(path + strlen(path) - strlen(with), with);
}

static int refused(int result, int why) { return result < 0 && errno == why; }

int main(void) {
    start();
    sprintf(folder, "folder_made.%d", rank);
    sprintf(moved, "folder_made.%d.moved", rank);
    sprintf(spare, "folder_made.%d.spare", rank);
    for (int i = 0; i < 3; i++) {
        CHECK(mkdir(folder, 0700) == 0 && listed(folder) == 0 && refused(mkdir(folder, 0700), EEXIST));
        int at = open(folder, O_RDONLY | O_DIRECTORY);
        CHECK(at >= 0);
        put(AT_FDCWD, in(folder, "first"), "1");
        beat();

        CHECK(holds(at, "first", "1") && faccessat(at, "first", R_OK, 0) == 0);
        put(at, "second", "22");
        CHECK(holds(AT_FDCWD, in(folder, "second"), "22") && fstatat(at, "second", &facts, 0) == 0 && facts.st_size == 2);
        CHECK(mkdirat(at, "deep", 0700) == 0);
        put(at, "deep/third", "333");
        CHECK(listed(folder) == 3 && listed(in(folder, "deep")) == 1);
        beat();

        CHECK(refused(rmdir(folder), ENOTEMPTY) && refused(unlinkat(at, "deep", AT_REMOVEDIR), ENOTEMPTY));
        CHECK(refused(unlink(in(folder, "deep")), EISDIR) && refused(rmdir(in(folder, "first")), ENOTDIR));
        CHECK(refused(open(in(folder, "first/none"), O_RDONLY), ENOTDIR) && refused(open(in(folder, "none"), O_RDONLY), ENOENT));
        char link[PATH_MAX] = "", whole[PATH_MAX];
        int first = openat(at, "first", O_RDONLY);
        sprintf(name, "/proc/self/fd/%d", first);
        CHECK(first >= 0 && readlink(name, link, sizeof link - 1) > 0 && realpath(name, whole) && !strcmp(link, whole));
        CHECK(ends(link, in(folder, "first")) && close(first) == 0);
        beat();

        CHECK(symlink("deep", in(folder, "link")) == 0 && holds(at, "link/third", "333"));
        put(at, "link/fourth", "4444");
        CHECK(holds(at, "deep/fourth", "4444") && lstat(in(folder, "link"), &facts) == 0 && S_ISLNK(facts.st_mode));
        CHECK(fchdir(at) == 0 && getcwd(whole, sizeof whole) && ends(whole, folder) && holds(AT_FDCWD, "first", "1"));
        CHECK(chdir("..") == 0 && access(folder, F_OK) == 0);
        beat();

        CHECK(mkdir(spare, 0700) == 0 && refused(rename(in(folder, "first"), spare), EISDIR));
        CHECK(rename(spare, moved) == 0 && rename(folder, moved) == 0 && access(folder, F_OK) < 0);
        beat();

        CHECK(listed(moved) == 4 && holds(AT_FDCWD, in(moved, "deep/fourth"), "4444") && holds(at, "second", "22"));
        CHECK(refused(rmdir(moved), ENOTEMPTY));
        CHECK(unlinkat(at, "deep/third", 0) == 0 && unlinkat(at, "deep/fourth", 0) == 0 && unlinkat(at, "second", 0) == 0);
        CHECK(unlinkat(at, "link", 0) == 0 && unlink(in(moved, "first")) == 0);
        CHECK(unlinkat(at, "deep", AT_REMOVEDIR) == 0 && listed(moved) == 0);
        CHECK(close(at) == 0 && rmdir(moved) == 0 && refused(rmdir(moved), ENOENT));
        CHECK(refused(open(in(moved, "late"), O_WRONLY | O_CREAT, 0600), ENOENT) && access(name, F_OK) < 0);
        beat();
    }
    say("all gone");
    return done("folder_made");
}
