/* logs: what a job wrote. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "base/date.h"
#include "cli/commands.h"
#include "cli/field.h"
#include "cli/jobs.h"
#include "cli/lane.h"
#include "cli/text.h"
#include "cli/tty.h"

#define RETRY_MS 500
#define RETRIES_MAX 1200 /* ten minutes without a server */
#define CONTEXT_MAX 50
#define FOUND_MAX (32u << 20)

struct logs_opts {
    struct common common;
    bool follow, timestamps, ignore_case, all;
    const char *tail, *run, *grep, *search;
    uint64_t replica, context, limit, before;
};

static const struct opt opts[] = {
    { "follow,f", OPT_FLAG, offsetof(struct logs_opts, follow), NULL, "go on until it ends", 0, 0 },
    { "tail,n", OPT_TEXT, offsetof(struct logs_opts, tail), "N", "only the last N lines", 0, 0 },
    { "timestamps,t", OPT_FLAG, offsetof(struct logs_opts, timestamps), NULL,
      "each line with its time and stream", 0, 0 },
    { "replica", OPT_NUMBER, offsetof(struct logs_opts, replica), "N", "of this replica", 0, 4095 },
    { "run", OPT_TEXT, offsetof(struct logs_opts, run), "N", "of this run (the last)", 0, 0 },
    { "grep,g", OPT_TEXT, offsetof(struct logs_opts, grep), "TEXT",
      "only lines with this text in them", 0, 0 },
    { "ignore-case,i", OPT_FLAG, offsetof(struct logs_opts, ignore_case), NULL,
      "large and small letters are alike", 0, 0 },
    { "context,C", OPT_NUMBER, offsetof(struct logs_opts, context), "N",
      "and so many lines before and after each", 0, CONTEXT_MAX },
    { "search", OPT_TEXT, offsetof(struct logs_opts, search), "TEXT",
      "instead of a job: lines with this text, of your newest jobs", 0, 0 },
    { "all,a", OPT_FLAG, offsetof(struct logs_opts, all), NULL,
      "search every job whose output you may read", 0, 0 },
    { "limit", OPT_NUMBER, offsetof(struct logs_opts, limit), "N", "search so many jobs (100)", 1,
      1000 },
    { "before", OPT_NUMBER, offsetof(struct logs_opts, before), "ID",
      "search jobs with smaller numbers", 1, INT64_MAX },
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

/* ---- a word in many jobs ---- */

static void add_found_line(struct buf *b, const struct json *job, const struct json *line,
                           bool timestamps)
{
    char when[32];
    uint64_t replica = field_u64(line, "replica");
    buf_printf(b, "%llu", (unsigned long long)field_u64(job, "id"));
    if (replica)
        buf_printf(b, "/%llu", (unsigned long long)replica);
    buf_addz(b, " ");
    text_add_clean(b, field_str(job, "name"));
    if (timestamps) {
        buf_printf(b, " %s ", date_stamp(field_i64(line, "t_ms", 0), when));
        text_add_clean(b, field_str(line, "stream"));
    }
    buf_addz(b, ": ");
    text_add_clean(b, field_str(line, "text"));
    buf_addz(b, "\n");
}

/* How far it came is said beside what it found: no line is no answer when it was cut short. */
static void note_found(const struct cli *c, const struct json *found)
{
    static const struct {
        const char *cut, *why;
    } whys[] = {
        { "jobs", "there are older jobs" },
        { "bytes", "that was as much output as one search looks at" },
        { "lines", "that is as many lines as one search gives" },
    };
    struct str cut = field_str(found, "cut");
    cli_note(c, "%llu lines in the output of %llu jobs (%.1f MiB)",
             (unsigned long long)field_u64(found, "lines"),
             (unsigned long long)field_u64(found, "searched"),
             (double)field_u64(found, "bytes") / (1 << 20));
    for (size_t i = 0; i < ARRAY_LEN(whys); i++)
        if (str_is(cut, whys[i].cut))
            cli_note(c, "cut short: %s; go on with --before %llu", whys[i].why,
                     (unsigned long long)field_u64(found, "next"));
}

static int search(struct cli *c, const struct logs_opts *o, struct err *e)
{
    AUTO(buf_free) struct buf path = BUF(4096), out = BUF(FOUND_MAX);
    const char *user = o->all ? NULL : cli_whoami(c, e);
    if (!o->all && !user)
        return -1;
    buf_printf(&path, "/v1/logs?limit=%llu", (unsigned long long)(o->limit ? o->limit : 100));
    query_add(&path, "grep", o->search);
    if (user)
        query_add(&path, "user", user);
    if (o->ignore_case)
        buf_addz(&path, "&ignore_case=1");
    if (o->before)
        buf_printf(&path, "&before=%llu", (unsigned long long)o->before);
    if (buf_check(&path, e) < 0)
        return -1;
    AUTO(json_free_p) struct json_doc *d = cli_get(c, path.p, e);
    if (!d)
        return -1;
    const struct json *jobs = json_find(json_root(d), "jobs");
    for (const struct json *j = json_is_array(jobs) ? json_first(jobs) : NULL; j;
         j = json_next(jobs, j)) {
        const struct json *lines = json_find(j, "lines");
        for (const struct json *l = json_is_array(lines) ? json_first(lines) : NULL; l;
             l = json_next(lines, l))
            add_found_line(&out, j, l, o->timestamps);
        if (field_bool(j, "more"))
            cli_note(c, "job %llu: not all of it was looked at: nightshift logs --grep TEXT %llu",
                     (unsigned long long)field_u64(j, "id"),
                     (unsigned long long)field_u64(j, "id"));
    }
    if (cli_print(&out, e) < 0)
        return -1;
    note_found(c, json_root(d));
    return 0;
}

/* ---- the command ---- */

static int check_opts(const struct logs_opts *o, struct words args, struct err *e)
{
    if (o->search && (args.n || o->grep || o->follow || o->tail || o->run || o->context)) {
        err_set(e, ERR_INVALID, "--search looks at the output of many jobs");
        return err_hint(e, "for one job: nightshift logs --grep TEXT JOB");
    }
    if (!o->search && (o->all || o->limit || o->before)) {
        err_set(e, ERR_INVALID, "--all, --limit and --before go with --search");
        return err_hint(e, "e.g. nightshift logs --search 'out of memory' --all");
    }
    if (!o->search && !o->grep && (o->ignore_case || o->context)) {
        err_set(e, ERR_INVALID, "--ignore-case and --context go with --grep");
        return err_hint(e, "e.g. nightshift logs --grep error -i -C 3 JOB");
    }
    if (!o->search && !args.n) {
        err_set(e, ERR_INVALID, "logs needs JOB");
        return err_hint(e, "nightshift logs JOB, or nightshift logs --search TEXT");
    }
    return 0;
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
                           .grep = o->grep,
                           .ignore_case = o->ignore_case,
                           .context = (uint32_t)o->context,
                           .program = c->program };
    if (check_opts(o, args, e) < 0)
        return -1;
    if (o->search)
        return search(c, o, e);
    signal(SIGPIPE, SIG_IGN);
    if (jobs_resolve_one(c, args.v[0], &w.job, e) < 0 || !cli_client(c, e) ||
        signals_open(&signals, e) < 0)
        return -1;
    AUTO(lane_free_p) struct lane *l = lane_new(&w);
    return follow(c, l, &signals, w.job, e);
}

const struct command command_logs = {
    .name = "logs",
    .args = "[JOB]",
    .help = "what a job wrote; lines with a text in one job, or in many",
    .more = "    nightshift logs -f 17\n"
            "    nightshift logs --grep loss -C 2 17       # with the lines around\n"
            "    nightshift logs --search 'out of memory'  # in your newest jobs\n",
    .group = GROUP_JOBS,
    .word = WORD_JOB,
    COMMAND_OPTS(opts, struct logs_opts),
    .min_args = 0,
    .max_args = 1,
    .run = run_logs,
};
