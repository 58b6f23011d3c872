/* nightshift-init: the first process of every task.  See supervisor.h and README.md. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/str.h"
#include "init/supervisor.h"
#include "wire/joblog.h"

#define USAGE 2

static const char help[] =
    "usage: nightshift-init [--tty] [--stdin] [--log-bytes N] [--note TEXT] -- PROGRAM "
    "[ARGUMENT...]\n"
    "\n"
    "Runs PROGRAM as the job of a task and stays its supervisor.  The keeper starts it; it "
    "expects\n"
    "the task's files in descriptors 3 to 8 (control socket, status, four log segments).\n"
    "\n"
    "  --tty          the job gets a terminal of its own\n"
    "  --stdin        the job's stdin is open for attached clients; otherwise it is empty\n"
    "  --log-bytes N  keep at most N bytes of output (default 67108864)\n"
    "  --note TEXT    put this before its output, as a word of ours\n"
    "  --help         show this\n"
    "  --version      show the version\n";

/* Not base/parse: that one needs the JSON library, and we carry no library. */
static int parse_bytes(const char *text, uint64_t *out, struct err *e)
{
    uint64_t v = 0;
    const char *p = text;
    for (; *p >= '0' && *p <= '9' && v <= JOBLOG_BYTES_MAX; p++)
        v = v * 10 + (uint64_t)(*p - '0');
    if (*p || p == text || v < JOBLOG_BYTES_MIN || v > JOBLOG_BYTES_MAX)
        return err_set(e, ERR_INVALID, "--log-bytes '%s' is not a number from %u to %llu", text,
                       JOBLOG_BYTES_MIN, (unsigned long long)JOBLOG_BYTES_MAX);
    *out = v;
    return 0;
}

/* 1: said what was asked for, nothing to run. */
static int parse(int argc, char **argv, struct supervisor_options *o, struct err *e)
{
    int i = 1;
    for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
        const char *word = argv[i];
        if (strcmp(word, "--tty") == 0) {
            o->tty = true;
        } else if (strcmp(word, "--stdin") == 0) {
            o->input = true;
        } else if (strcmp(word, "--log-bytes") == 0) {
            if (++i == argc)
                return err_set(e, ERR_INVALID, "--log-bytes needs a number");
            if (parse_bytes(argv[i], &o->log_bytes, e) < 0)
                return -1;
        } else if (strcmp(word, "--note") == 0) {
            if (++i == argc)
                return err_set(e, ERR_INVALID, "--note needs a text");
            o->note = argv[i];
        } else if (strcmp(word, "--help") == 0) {
            return fputs(help, stdout), 1;
        } else if (strcmp(word, "--version") == 0) {
            return puts("nightshift-init " NS_VERSION), 1;
        } else {
            return err_set(e, ERR_INVALID, "unknown option '%s'", word);
        }
    }
    if (i + 1 >= argc)
        return err_set(e, ERR_INVALID, "no program was given: write it after '--'");
    o->argv = (const char *const *)argv + i + 1;
    return 0;
}

/* The job gets none of our descriptors; and those that the keeper should have opened are there. */
static int check_descriptors(struct err *e)
{
    int listens = 0;
    socklen_t n = sizeof listens;
    /* What we open later must not become somebody's stdin, stdout or stderr. */
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0)
            return err_set(e, ERR_UNAVAILABLE, "cannot open /dev/null: %s", strerror(errno));
    for (int fd = SUPERVISOR_FD_LISTENER; fd <= SUPERVISOR_FD_LAST; fd++)
        if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
            return err_set(e, ERR_INVALID, "descriptor %d is not open; the keeper opens 3 to 8",
                           fd);
    if (getsockopt(SUPERVISOR_FD_LISTENER, SOL_SOCKET, SO_ACCEPTCONN, &listens, &n) < 0 || !listens)
        return err_set(e, ERR_INVALID, "descriptor %d is not a listening socket",
                       SUPERVISOR_FD_LISTENER);
    /* Strays too; before Linux 5.11 there is no such call, and the keeper leaves none. */
    close_range(SUPERVISOR_FD_LAST + 1, ~0U, CLOSE_RANGE_CLOEXEC);
    return 0;
}

int main(int argc, char **argv)
{
    struct supervisor_options o = { .log_bytes = JOBLOG_BYTES_DEFAULT };
    struct err e = { 0 };
    int rc = parse(argc, argv, &o, &e);
    if (rc > 0)
        return 0;
    if (rc < 0 || check_descriptors(&e) < 0) {
        fprintf(stderr, "nightshift-init: %s\n", e.msg);
        return USAGE;
    }
    return supervisor_run(&o);
}
