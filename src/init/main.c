/* nightshift-init: the first process of every task.  See supervisor.h, pod.h and README.md. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/str.h"
#include "init/args.h"
#include "init/bridge.h"
#include "init/pod.h"

#define FAILED 1
#define USAGE 2

/* What the keeper hands over. */
#define FD_LISTENER 3
#define FD_STATUS 4
#define FD_SEGMENTS 5 /* and the three after it */
#define FD_LAST 8

static int complain(const struct err *e, int code)
{
    fprintf(stderr, "nightshift-init: %s\n", e->msg);
    return code;
}

/* What we open later must not become somebody's stdin, stdout or stderr. */
static int check_standard(struct err *e)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0)
            return err_set(e, ERR_UNAVAILABLE, "cannot open /dev/null: %s", strerror(errno));
    return 0;
}

/* Those that the keeper should have opened are there, and the job gets none of them. */
static int keeper_files(struct supervisor_files *out, struct err *e)
{
    int listens = 0;
    socklen_t n = sizeof listens;
    for (int fd = FD_LISTENER; fd <= FD_LAST; fd++)
        if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
            return err_set(e, ERR_INVALID, "descriptor %d is not open; the keeper opens 3 to 8",
                           fd);
    if (getsockopt(FD_LISTENER, SOL_SOCKET, SO_ACCEPTCONN, &listens, &n) < 0 || !listens)
        return err_set(e, ERR_INVALID, "descriptor %d is not a listening socket", FD_LISTENER);
    *out = (struct supervisor_files){ .listener = FD_LISTENER, .status = FD_STATUS };
    for (int i = 0; i < JOBLOG_SEGMENTS; i++)
        out->segment[i] = FD_SEGMENTS + i;
    return 0;
}

static int run_for_keeper(struct supervisor_options *o)
{
    struct err e = { 0 };
    if (keeper_files(&o->files, &e) < 0)
        return complain(&e, USAGE);
    return supervisor_run(o);
}

/* A job is worth more than the possibility to look at it. */
static int run_in_pod(struct supervisor_options *o, const char *dir)
{
    struct err e = { 0 };
    o->files = (struct supervisor_files)SUPERVISOR_NO_FILES;
    if (pod_open(dir, &o->files, &e) < 0) {
        err_wrap(&e, "nobody will be able to attach to this job");
        o->complaint = e.msg;
    }
    int code = supervisor_run(o);
    o->complaint = NULL; /* it was of this function */
    return code;
}

static int run(struct args *a)
{
    struct err e = { 0 };
    switch (a->mode) {
    case ARGS_KEEPER: return run_for_keeper(&a->run);
    case ARGS_POD: return run_in_pod(&a->run, a->path);
    case ARGS_BRIDGE: return bridge_run(a->path, &e) < 0 ? complain(&e, FAILED) : 0;
    case ARGS_INSTALL: return pod_install(a->path, &e) < 0 ? complain(&e, FAILED) : 0;
    case ARGS_HELP: return args_help(), 0;
    case ARGS_VERSION: return puts("nightshift-init " NS_VERSION), 0;
    }
    abort();
}

int main(int argc, char **argv)
{
    struct args a = { 0 };
    struct err e = { 0 };
    sigset_t all, before;
    /* First of all: to a process 1 a signal that is neither blocked nor handled is lost. */
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    if (args_parse(argc, argv, &a, &e) < 0 || check_standard(&e) < 0)
        return complain(&e, USAGE);
    if (a.mode != ARGS_POD)
        sigprocmask(SIG_SETMASK, &before, NULL);
    /* The job gets no strays; before Linux 5.11 there is no such call, and the keeper leaves none. */
    close_range(a.mode == ARGS_KEEPER ? FD_LAST + 1 : 3, ~0U, CLOSE_RANGE_CLOEXEC);
    if (a.chdir && chdir(a.chdir) < 0) { /* the keeper knows it by its first word */
        fprintf(stderr, "chdir %s: %s\n", a.chdir, strerror(errno));
        return USAGE;
    }
    return run(&a);
}
