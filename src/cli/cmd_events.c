/* events: what happens, as it happens. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/field.h"
#include "cli/jobs.h"
#include "cli/life.h"
#include "cli/sse.h"
#include "cli/text.h"
#include "cli/tty.h"

#define QUIET_MS 500 /* without --follow: silence this long is the end */
#define RETRY_MS 1000
#define RETRIES_MAX 600

struct events_opts {
    struct common common;
    bool follow;
    const char *after, *job;
};

static const struct opt opts[] = {
    { "follow,f", OPT_FLAG, offsetof(struct events_opts, follow), NULL, "go on until Ctrl-C", 0,
      0 },
    { "after", OPT_TEXT, offsetof(struct events_opts, after), "N", "only those after number N", 0,
      0 },
    { "job", OPT_TEXT, offsetof(struct events_opts, job), "JOB", "only of this job", 0, 0 },
    { "output,o", OPT_CHOICE, offsetof(struct events_opts, common.output), "table|json",
      "json: one object a line", 0, 0 },
    OPTS_COMMON(struct events_opts),
};

struct follow {
    const struct events_opts *o;
    char job[32]; /* only of this one; empty: of all */
    struct sse sse;
    char last[64]; /* id of the last event */
    bool closed;   /* nobody reads our output any more */
};

static void add_change(const struct json *root, const char *noun, struct buf *b)
{
    char when[24];
    buf_printf(b, "%s  %s ", text_time_seconds(field_i64(root, "t_ms", 0), when), noun);
    text_add_fit(b, field_str(root, noun), 40);
    buf_addz(b, "  ");
    text_add_fit(b, field_str(root, "what"), 24);
    buf_addz(b, " by ");
    text_add_fit(b, field_str(root, "by"), 24);
}

static void print_event(struct follow *f, struct str data, struct err *e)
{
    AUTO(buf_free) struct buf b = BUF(SSE_EVENT_MAX);
    AUTO(json_free_p) struct json_doc *doc = json_read(data, e);
    const struct json *root = doc ? json_root(doc) : NULL;
    char job[32], when[24];
    if (!json_is_object(root))
        return;
    snprintf(job, sizeof job, "%llu", (unsigned long long)field_u64(root, "job"));
    if (f->job[0] && strcmp(f->job, job) != 0)
        return;
    if (cli_output(&f->o->common) == OUT_JSON) {
        buf_add(&b, data);
    } else if (field_known(root, "pool")) {
        add_change(root, "pool", &b);
    } else if (field_known(root, "reservation")) {
        add_change(root, "reservation", &b);
    } else {
        struct str from = field_str(root, "from"), reason = field_str(root, "reason");
        buf_printf(&b, "%s  job %-6s ", text_time_seconds(field_i64(root, "t_ms", 0), when), job);
        text_add_fit(&b, field_str(root, "user"), 24);
        buf_addc(&b, ' ');
        text_add_fit(&b, field_str(root, "name"), 40);
        buf_addz(&b, "  ");
        text_add_clean(&b, from);
        buf_addz(&b, from.n ? " -> " : "");
        text_add_clean(&b, field_str(root, "state"));
        buf_addz(&b, reason.n ? "  " : "");
        text_add_clean(&b, reason);
    }
    buf_addc(&b, '\n');
    f->closed = tty_write(STDOUT_FILENO, buf_str(&b)) < 0;
}

static enum feed_is take(struct follow *f, struct feed *feed, struct err *e)
{
    struct str bytes;
    enum feed_is is;
    while ((is = feed_read(feed, &bytes, e)) == FEED_BYTES) {
        struct sse_event ev = { 0 };
        int rc;
        while ((rc = sse_next(&f->sse, &bytes, &ev, e)) > 0 && !f->closed) {
            snprintf(f->last, sizeof f->last, "%s", ev.id);
            print_event(f, ev.data, e);
        }
        if (rc < 0)
            return FEED_FAILED;
    }
    return is;
}

/* 0: the stream ended; 1: the person or the reader of our output has had enough. */
static int read_stream(struct follow *f, struct feed *feed, struct signals *signals, struct err *e)
{
    for (;;) {
        enum feed_is is = take(f, feed, e);
        if (f->closed)
            return 1;
        if (is == FEED_END)
            return 0;
        if (is == FEED_FAILED)
            return -1;
        struct pollfd p[] = { { .fd = feed_fd(feed), .events = POLLIN },
                              { .fd = signals->fd, .events = POLLIN } };
        int n = poll(p, ARRAY_LEN(p), f->o->follow || !feed_is_open(feed) ? -1 : QUIET_MS);
        if (n == 0)
            return 1;
        if (signals_end(signals))
            return 1;
    }
}

static struct feed *connect_feed(struct cli *c, const struct follow *f, struct err *e)
{
    AUTO(buf_free) struct buf path = BUF(4096);
    struct client *client = cli_client(c, e);
    buf_addz(&path, "/v1/events");
    if (f->last[0] || !f->o->follow)
        query_add(&path, "after", f->last[0] ? f->last : "0");
    return client && buf_check(&path, e) == 0 ? feed_open(client, path.p, e) : NULL;
}

static void follow_clear(struct follow *f)
{
    sse_clear(&f->sse);
}

static int run_events(struct cli *c, const void *opts_p, struct words args, struct err *e)
{
    AUTO(follow_clear) struct follow f = { .o = opts_p, .sse = sse_new() };
    AUTO(signals_close) struct signals signals = { .fd = -1 };
    uint64_t job;
    signal(SIGPIPE, SIG_IGN);
    if (f.o->after)
        snprintf(f.last, sizeof f.last, "%s", f.o->after);
    if (f.o->job)
        snprintf(f.job, sizeof f.job, "%s", f.o->job);
    if (args.n > 0) { /* all of its life, and then what comes */
        if (jobs_resolve_one(c, args.v[0], &job, e) < 0 ||
            life_print(c, job, cli_output(&f.o->common) == OUT_JSON, e) < 0)
            return -1;
        if (!f.o->follow)
            return 0;
        snprintf(f.job, sizeof f.job, "%llu", (unsigned long long)job);
    }
    if (signals_open(&signals, e) < 0)
        return -1;
    bool first = true;
    for (int tries = 0; tries < RETRIES_MAX; tries++, first = false) {
        AUTO(feed_free_p) struct feed *feed = connect_feed(c, &f, e);
        int rc = feed ? read_stream(&f, feed, &signals, e) : -1;
        tries = feed && feed_is_open(feed) ? 0 : tries;
        if (rc > 0 || (rc == 0 && !f.o->follow))
            return 0;
        /* A server that restarts is met again where it was left. */
        if (rc < 0 && (e->code != ERR_UNAVAILABLE || !f.o->follow || (first && !feed)))
            return -1;
        struct pollfd p = { .fd = signals.fd, .events = POLLIN };
        if (poll(&p, 1, RETRY_MS) > 0 && signals_end(&signals))
            return 0;
    }
    return -1;
}

const struct command command_events = {
    .name = "events",
    .args = "[JOB]",
    .help = "what happened to jobs, or to one from submit to end; -f: what happens",
    .group = GROUP_CLUSTER,
    .word = WORD_JOB,
    COMMAND_OPTS(opts, struct events_opts),
    .max_args = 1,
    .run = run_events,
};
