/* A task's folder, as whoever waits for its socket sees it: listen() is looked at on its way. */
#include "init/pod.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/lib/test.h"

static struct {
    char path[80];
    int calls;
    bool was_there;
} seen;

/* Stands before the library's own. */
int listen(int fd, int backlog)
{
    int (*real)(int, int);
    void *found = dlsym(RTLD_NEXT, "listen");
    memcpy(&real, &found, sizeof real);
    seen.calls++;
    seen.was_there |= access(seen.path, F_OK) == 0;
    return real(fd, backlog);
}

static void close_all(struct supervisor_files *f)
{
    close(f->listener);
    close(f->status);
    for (size_t i = 0; i < JOBLOG_SEGMENTS; i++)
        close(f->segment[i]);
}

static void the_socket_is_there_when_it_listens(void)
{
    char dir[] = "/tmp/nightshift-pod-XXXXXX", command[64];
    struct supervisor_files f;
    struct err e;
    CHECK(mkdtemp(dir));
    snprintf(seen.path, sizeof seen.path, "%s/ctl.sock", dir);
    for (int again = 0; again < 2; again++) { /* the second finds what the first left */
        CHECK(pod_open(dir, &f, &e) == 0);
        CHECK(seen.calls == again + 1 && !seen.was_there);
        CHECK(access(seen.path, F_OK) == 0);
        struct sockaddr_un to = { .sun_family = AF_UNIX };
        snprintf(to.sun_path, sizeof to.sun_path, "%s", seen.path);
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        CHECK(connect(fd, (const struct sockaddr *)&to, sizeof to) == 0);
        close(fd);
        close_all(&f);
    }
    snprintf(command, sizeof command, "rm -r %s", dir);
    CHECK(system(command) == 0);
}

static const struct test tests[] = {
    { "a pod's socket has its name when it listens, not before",
      the_socket_is_there_when_it_listens },
};
TEST_CASES(tests)
