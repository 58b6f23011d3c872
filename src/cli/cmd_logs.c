/* logs: what a job wrote. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/jobs.h"
#include "cli/lane.h"
#include "cli/tty.h"

#define RETRY_MS 500
#define RETRIES_MAX 1200 /* ten minutes without a server */

struct logs_opts {
    struct common common;
    bool follow, timestamps;
    const char *tail, *run;
    uint64_t replica;
};

static const struct opt opts[] = {
    { "follow,f", OPT_FLAG, offsetof(struct logs_opts, follow), NULL, "go on until it ends", 0, 0 },
    { "tail,n", OPT_TEXT, offsetof(struct logs_opts, tail), "N", "only the last N lines", 0, 0 },
    { "timestamps,t", OPT_FLAG, offsetof(struct logs_opts, timestamps), NULL,
      "each line with its time and stream", 0, 0 },
    { "replica", OPT_NUMBER, offsetof(struct logs_opts, replica), "N", "of this replica", 0, 4095 },
    { "run", OPT_TEXT, offsetof(struct logs_opts, run), "N", "of this run (the last)", 0, 0 },
    OPTS_COMMON(struct logs_opts),
};

/* -1 on errors; 0: that was all; 1: the connection was lost. */
static int copy(struct cli *c, struct lane *l, struct signals *signals, uint64_t job, struct err *e)
{
    for (;;) {
        enum lane_is is = lane_step(l, e);
        if (is == LANE_EXITED && lane_note(l)[0])
            cli_note(c, "job %llu: %s", (unsigned long long)job, lane_note(l));
        if (is == LANE_LOST)
            return 1;
        if (is != LANE_OPEN)
            return is == LANE_REFUSED ? -1 : 0;
        struct pollfd p[] = { { .fd = lane_fd(l), .events = POLLIN },
                              { .fd = signals->fd, .events = POLLIN } };
        if (poll(p, ARRAY_LEN(p), -1) < 0 && errno != EINTR)
            return err_set(e, ERR_INTERNAL, "cannot wait: %s", strerror(errno));
        if (signals_end(signals))
            return 0;
    }
}

/* A server that restarts is met again where it was left. */
static int follow(struct cli *c, struct lane *l, struct signals *signals, uint64_t job,
                  struct err *e)
{
    int rc = lane_connect(l, c->client, e) < 0 ? -1 : copy(c, l, signals, job, e);
    for (int tries = 0; rc > 0 && tries < RETRIES_MAX; tries++) {
        struct pollfd p = { .fd = signals->fd, .events = POLLIN };
        lane_disconnect(l);
        if (poll(&p, 1, RETRY_MS) > 0 && signals_end(signals))
            return 0;
        if (lane_connect(l, c->client, e) == 0)
            rc = copy(c, l, signals, job, e);
        else if (e->code != ERR_UNAVAILABLE)
            return -1;
    }
    return rc == 0 ? 0 : -1;
}

static int run_logs(struct cli *c, const void *opts_p, struct words args, struct err *e)
{
    const struct logs_opts *o = opts_p;
    AUTO(signals_close) struct signals signals = { .fd = -1 };
    struct lane_want w = { .merged = true,
                           .once = !o->follow,
                           .records = o->timestamps,
                           .tail = o->tail,
                           .run = o->run,
                           .replica = (uint32_t)o->replica,
                           .program = c->program };
    signal(SIGPIPE, SIG_IGN);
    if (jobs_resolve_one(c, args.v[0], &w.job, e) < 0 || !cli_client(c, e) ||
        signals_open(&signals, e) < 0)
        return -1;
    AUTO(lane_free_p) struct lane *l = lane_new(&w);
    return follow(c, l, &signals, w.job, e);
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
