/* logs: what a job wrote. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/jobs.h"
#include "cli/tty.h"

struct logs_opts {
    struct common common;
    bool follow, timestamps;
    const char *tail, *replica, *run;
};

static const struct opt opts[] = {
    { "follow,f", OPT_FLAG, offsetof(struct logs_opts, follow), NULL, "go on until it ends", 0, 0 },
    { "tail,n", OPT_TEXT, offsetof(struct logs_opts, tail), "N", "only the last N lines", 0, 0 },
    { "timestamps,t", OPT_FLAG, offsetof(struct logs_opts, timestamps), NULL,
      "each line with its time and stream", 0, 0 },
    { "replica", OPT_TEXT, offsetof(struct logs_opts, replica), "N", "of this replica", 0, 0 },
    { "run", OPT_TEXT, offsetof(struct logs_opts, run), "N", "of this run (the last)", 0, 0 },
    OPTS_COMMON(struct logs_opts),
};

/* Copies until the end; a signal ends it, too. */
static int copy(struct feed *f, struct signals *signals, struct err *e)
{
    for (;;) {
        struct str bytes;
        struct pollfd p[] = { { .fd = feed_fd(f), .events = POLLIN },
                              { .fd = signals->fd, .events = POLLIN } };
        enum feed_is is = feed_read(f, &bytes, e);
        switch (is) {
        case FEED_BYTES:
            if (tty_write(STDOUT_FILENO, bytes) < 0)
                return 0;
            break;
        case FEED_END: return 0;
        case FEED_FAILED: return -1;
        case FEED_NOTHING:
            if (poll(p, ARRAY_LEN(p), -1) < 0 && errno != EINTR)
                return err_set(e, ERR_INTERNAL, "cannot wait: %s", strerror(errno));
            break;
        }
        for (int signo; (signo = signals_next(signals));)
            if (signo != SIGWINCH && signo != SIGCONT && signo != SIGTSTP)
                return 0;
    }
}

static int run_logs(struct cli *c, const void *opts_p, struct words args, struct err *e)
{
    const struct logs_opts *o = opts_p;
    AUTO(buf_free) struct buf path = BUF(4096);
    AUTO(signals_close) struct signals signals = { .fd = -1 };
    uint64_t id;
    if (jobs_resolve_one(c, args.v[0], &id, e) < 0)
        return -1;
    buf_printf(&path, "/v1/jobs/%llu/log", (unsigned long long)id);
    query_add(&path, "format", o->timestamps ? "records" : "text");
    if (o->follow)
        query_add(&path, "follow", "1");
    if (o->tail)
        query_add(&path, "tail", o->tail);
    if (o->replica)
        query_add(&path, "replica", o->replica);
    if (o->run)
        query_add(&path, "run", o->run);
    struct client *client = cli_client(c, e);
    if (!client || buf_check(&path, e) < 0 || signals_open(&signals, e) < 0)
        return -1;
    AUTO(feed_free_p) struct feed *f = feed_open(client, path.p, NULL, e);
    return f ? copy(f, &signals, e) : -1;
}

const struct command command_logs = {
    .name = "logs",
    .args = "JOB",
    .help = "what a job wrote",
    .group = GROUP_JOBS,
    .word = WORD_JOB,
    COMMAND_OPTS(opts, struct logs_opts),
    .min_args = 1,
    .max_args = 1,
    .run = run_logs,
};
