// Links and folders that are made and removed between events, and files with two names: a link is moved to the newest file, a
// file gets its last name by a link, a pipe has a name. At the end all are there.
#define _GNU_SOURCE
#include "state.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static char newest[40], fresh[40], draft[40], last[40], folder[40], queue[40], text[40];
static struct stat facts;

static void put(const char *name, int flags, int i) {
    int out = open(name, O_WRONLY | flags, 0600);
    CHECK(out >= 0 && dprintf(out, "step %d\n", i) == 7 && close(out) == 0);
}

static void holds(const char *name, int i) {
    char found[16] = "", expected[16];
    sprintf(expected, "step %d\n", i);
    int in = open(name, O_RDONLY);
    CHECK(in >= 0 && read(in, found, sizeof found) == 7 && !strcmp(found, expected) && close(in) == 0);
}

static int leads_to(const char *link, const char *name) {
    char found[40] = "";
    return readlink(link, found, sizeof found - 1) == (ssize_t)strlen(name) && !strcmp(found, name) &&
           lstat(link, &facts) == 0 && S_ISLNK(facts.st_mode) && stat(link, &facts) == 0 && S_ISREG(facts.st_mode);
}

int main(void) {
    start();
    sprintf(newest, "file_links.%d.newest", rank);
    sprintf(fresh, "file_links.%d.fresh", rank);
    sprintf(draft, "file_links.%d.draft", rank);
    sprintf(last, "file_links.%d.last", rank);
    sprintf(folder, "file_links.%d.folder", rank);
    sprintf(queue, "file_links.%d.queue", rank);
    for (int i = 0; i < 2; i++) {
        unlink(newest);
        sprintf(text, "file_links.%d.step%d", rank, i);
        put(text, O_CREAT | O_TRUNC, i);
        CHECK(symlink(text, newest) == 0 && symlink(text, newest) < 0 && errno == EEXIST);
        CHECK(leads_to(newest, text));
        holds(newest, i);
        beat();
        CHECK(leads_to(newest, text));
        put(newest, O_TRUNC, i + 1);
        holds(text, i + 1);
        beat();
        holds(newest, i + 1);
        CHECK(symlink("nowhere", fresh) == 0 && access(fresh, F_OK) < 0 && open(fresh, O_CREAT | O_EXCL, 0600) < 0);
        CHECK(open(newest, O_RDONLY | O_NOFOLLOW) < 0 && errno == ELOOP);
        CHECK(rename(fresh, newest) == 0 && lstat(fresh, &facts) < 0 && !fopen(newest, "r"));
        beat();
        CHECK(unlink(newest) == 0 && lstat(newest, &facts) < 0);
        unlink(last);
        put(draft, O_CREAT | O_EXCL, i);
        CHECK(link(draft, last) == 0 && link(draft, last) < 0 && errno == EEXIST);
        CHECK(stat(draft, &facts) == 0 && facts.st_nlink == 2 && unlink(draft) == 0);
        beat();
        holds(last, i);
        CHECK(access(draft, F_OK) < 0 && unlink(last) == 0 && link(last, draft) < 0 && errno == ENOENT);
        int nameless = open(".", O_TMPFILE | O_RDWR, 0600);
        if (nameless >= 0) {
            char name[40];
            sprintf(name, "/proc/self/fd/%d", nameless);
            CHECK(dprintf(nameless, "step %d\n", i) == 7 && linkat(AT_FDCWD, name, AT_FDCWD, last, AT_SYMLINK_FOLLOW) == 0);
            holds(last, i);
            CHECK(close(nameless) == 0 && unlink(last) == 0);
        }
        CHECK(unlink(text) == 0);
        beat();
        rmdir(folder);
        CHECK(mkdir(folder, 0700) == 0 && mkdir(folder, 0700) < 0 && errno == EEXIST);
        CHECK(stat(folder, &facts) == 0 && S_ISDIR(facts.st_mode) && unlink(folder) < 0);
        beat();
        CHECK(access(folder, F_OK) == 0 && rmdir(folder) == 0 && access(folder, F_OK) < 0);
        unlink(queue);
        CHECK(mkfifo(queue, 0600) == 0 && stat(queue, &facts) == 0 && S_ISFIFO(facts.st_mode));
        int both = open(queue, O_RDWR);
        put(queue, 0, i);
        char found[16] = "";
        CHECK(both >= 0 && read(both, found, 7) == 7 && found[5] == '0' + i && close(both) == 0 && unlink(queue) == 0);
        beat();
    }
    put(text, O_CREAT, 7);
    unlink(queue);
    CHECK(symlink(text, newest) == 0 && link(text, last) == 0 && mkdir(folder, 0700) == 0 && mkfifo(queue, 0600) == 0);
    beat();
    holds(newest, 7);
    holds(last, 7);
    say("%s", text);
    return done("file_links");
}
