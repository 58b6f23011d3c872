/* The output of a job: all of it, its end, or as it comes. */
#include <stdio.h>

#include "api/state.h"
#include "base/parse.h"
#include "store/kept.h"
#include "wire/joblog.h"
#include "wire/stream.h"

#define CHUNK (256u << 10) /* handed to the connection at a time */
#define FOLLOWERS_MAX 4096

enum log_format {
    LOG_AS_TEXT,
    LOG_AS_RECORDS,
    LOG_AS_FRAMES
};

struct follower {
    struct api *api;
    struct http_request *rq;
    uint64_t job;
    uint32_t run, replica; /* run 0: the latest, and those after it */
    uint32_t opened;       /* the run whose log is open */
    enum log_format format;
    bool follow;
    struct joblog_reader *reader;
    struct filewatch_one *watch;
    struct follower *next;
    struct loop_watch *again; /* the connection takes no more for now */
};

static void follower_free(struct follower *f)
{
    struct follower **at = &f->api->followers;
    while (*at != f)
        at = &(*at)->next;
    *at = f->next;
    filewatch_remove(f->watch);
    loop_unwatch(f->again);
    joblog_reader_free(f->reader);
    free(f);
}

static void on_close(void *ctx)
{
    follower_free(ctx);
}

static void put_record(const struct follower *f, const struct joblog_record *r, struct buf *out)
{
    char when[32];
    if (f->format == LOG_AS_RECORDS) {
        buf_printf(out, "%s %s %c ", clock_format(r->t_us / 1000, when),
                   joblog_stream_name(r->stream), r->full ? 'F' : 'P');
        buf_add(out, r->text);
        buf_addc(out, '\n');
    } else if (r->stream == JOBLOG_META) {
        return;
    } else if (f->format == LOG_AS_TEXT) {
        buf_add(out, r->text);
        if (r->full)
            buf_addc(out, '\n');
    } else {
        enum stream_type t = r->stream == JOBLOG_STDERR ? STREAM_STDERR : STREAM_STDOUT;
        AUTO(buf_free) struct buf line = BUF(JOBLOG_TEXT_MAX + 1);
        buf_add(&line, r->text);
        if (r->full)
            buf_addc(&line, '\n');
        if (line.n)
            stream_put_data(out, t, buf_str(&line));
    }
}

/* The job as the store has it: its end is told when it is on the disk. */
static bool job_ended(const struct follower *f, struct store_job_now *out)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct store_scope all = { .everything = true };
    struct store_job j;
    struct err e;
    if (store_job_get(f->api->config.store, &all, f->job, &a, &j, &e) < 0)
        return true; /* it is gone altogether */
    *out = j.now;
    return job_state_ended(j.now.state);
}

static void put_end(const struct follower *f, const struct store_job_now *n, struct buf *out)
{
    struct stream_exit how = { .code = n->exit_code & 0xff, .signal = n->exit_signal & 0x7f };
    if (f->format != LOG_AS_FRAMES)
        return;
    if (n->state == JOB_CANCELLED && !how.code && !how.signal)
        how.signal = 15;
    stream_put_exit(out, &how);
}

static void finish(struct follower *f)
{
    struct http_request *rq = f->rq;
    follower_free(f);
    http_stream_end(rq);
}

/* What the open log still has, whatever the connection's queue; false: the reader was cut off. */
static bool send_rest(struct follower *f)
{
    struct joblog_record r;
    struct err e;
    int got = 1;
    while (got == 1) {
        AUTO(buf_free) struct buf b = BUF(2 * CHUNK);
        while (b.n < CHUNK && (got = joblog_reader_next(f->reader, &r, &e)) == 1)
            put_record(f, &r, &b);
        if (b.n && !http_stream_write(f->rq, buf_str(&b)))
            return false;
    }
    return true;
}

/* Sends what there is; ends when the job has ended, or at once when nobody follows. */
static void send_on(void *ctx)
{
    struct follower *f = ctx;
    AUTO(buf_free) struct buf b = BUF(2 * CHUNK);
    struct joblog_record r;
    struct store_job_now now = { 0 };
    struct err e;
    int got = 0;                     /* no log yet */
    bool ended = job_ended(f, &now); /* asked first: what it wrote before is then all there */
    if (http_stream_queued(f->rq) > CHUNK) {
        loop_timer_set(f->again, 5, 0);
        return;
    }
    while (b.n < CHUNK && f->reader && (got = joblog_reader_next(f->reader, &r, &e)) == 1)
        put_record(f, &r, &b);
    if (got < 0)
        log_event(f->api->config.log, LOG_WARN_, "log.read", "job=%llu why=%s",
                  (unsigned long long)f->job, e.msg);
    bool over = got != 1 && (ended || !f->follow);
    if (over && ended)
        put_end(f, &now, &b);
    if (b.n && !http_stream_write(f->rq, buf_str(&b)))
        return;
    if (over)
        finish(f);
    else if (got == 1)
        loop_timer_set(f->again, 0, 0);
}

/* A job that waits has no log yet; look again when something happened. */
static void open_log(struct follower *f, uint32_t run)
{
    char dir[4096];
    struct err e;
    const struct engine *en = control_engine(f->api->config.control);
    struct task_id t = { f->job, run, f->replica };
    en->ops->log_dir(en->self, t, dir, sizeof dir);
    f->watch = filewatch_remove(f->watch);
    f->reader = joblog_reader_free(f->reader);
    f->opened = run;
    f->watch = filewatch_add(f->api->files, dir, send_on, f, &e);
    if (f->watch)
        f->reader = joblog_reader_open(dir, &e);
}

/* A job that is started again writes another log: what is left of the old one first. */
static void wake(struct follower *f)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct store_scope all = { .everything = true };
    struct store_job j;
    struct err e;
    uint32_t want = f->run;
    if (!want && store_job_get(f->api->config.store, &all, f->job, &a, &j, &e) == 0)
        want = j.now.run;
    bool next = want != f->opened && want > 0;
    if (next && f->reader && !send_rest(f))
        return;
    if (next || (want && !f->reader))
        open_log(f, want);
    send_on(f);
}

void followers_wake(struct api *a)
{
    for (struct follower *f = a->followers, *next; f; f = next) {
        next = f->next;
        wake(f);
    }
}

void followers_free(struct api *a)
{
    while (a->followers)
        finish(a->followers);
}

static int read_format(struct call *c, enum log_format *out, struct err *e)
{
    static const char *const words[] = { "text", "records", "frames" };
    const char *text = http_query(c->rq, "format");
    *out = LOG_AS_TEXT;
    if (!text)
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strcmp(text, words[i]) == 0) {
            *out = (enum log_format)i;
            return 0;
        }
    c->field = "format";
    err_set(e, ERR_INVALID, "query 'format': '%.40s' is not known", text);
    return err_hint(e, "one of: text, records, frames");
}

/* What was removed is told as such, and why; an empty answer would be a lie. */
static int check_kept(struct call *c, uint64_t job, struct err *e)
{
    static const struct {
        const char *why, *key;
    } whys[] = {
        [LOG_THERE] = { "", "" },
        [LOG_AGE] = { "it is kept no longer", "keep_logs" },
        [LOG_ROOM] = { "all output together was too large, and it was the oldest",
                       "keep_logs_total" },
        [LOG_JOB] = { "jobs are kept no longer", "keep_jobs" },
    };
    _Static_assert(ARRAY_LEN(whys) == STORE_LOG_WHY_COUNT, "a reason was added without its words");
    struct store_log log;
    struct store_job j;
    char when[32], age[32];
    if (store_log_get(c->api->config.store, job, &log, e) < 0)
        return e->code == ERR_NOT_FOUND ? 0 : -1;
    if (log.removed_ms == 0 || find_job(c, job, true, &j, e) < 0)
        return log.removed_ms ? -1 : 0;
    int64_t age_ms = MAX(log.removed_ms - j.now.ended_ms, INT64_C(0)) / 1000 * 1000;
    enum store_log_why why = log.why < STORE_LOG_WHY_COUNT ? log.why : LOG_AGE;
    err_set(e, ERR_NOT_FOUND, "the output of job %llu was removed on %s, %s after its end: %s",
            (unsigned long long)job, clock_format(log.removed_ms, when),
            format_duration_ms(age_ms, age), whys[why].why);
    return err_hint(e, "how long it is kept is %s in the settings of nightshiftd", whys[why].key);
}

int api_job_log(struct call *c, struct err *e)
{
    uint64_t id, replica = 0, run = 0, tail = UINT64_MAX;
    struct follower want = { .api = c->api, .rq = c->rq };
    struct store_job j;
    size_t open = 0;
    if (read_id(c, &id, e) < 0 || query_bool(c, "follow", &want.follow, e) < 0 ||
        query_u64(c, "replica", REPLICAS_MAX, &replica, e) < 0 ||
        query_u64(c, "run", UINT32_MAX, &run, e) < 0 ||
        query_u64(c, "tail", INT64_MAX, &tail, e) < 0 || read_format(c, &want.format, e) < 0 ||
        find_job(c, id, true, &j, e) < 0 || check_kept(c, id, e) < 0)
        return -1;
    if (replica >= j.fixed.replicas) {
        c->field = "replica";
        return err_set(e, ERR_NOT_FOUND, "job %llu has replicas 0 to %u", (unsigned long long)id,
                       j.fixed.replicas - 1);
    }
    for (struct follower *f = c->api->followers; f; f = f->next)
        open++;
    if (open >= FOLLOWERS_MAX)
        return err_set(e, ERR_UNAVAILABLE, "%zu clients read logs already", open);
    struct follower *f = xcalloc(1, sizeof *f);
    *f = want;
    f->job = id;
    f->run = (uint32_t)run;
    f->replica = (uint32_t)replica;
    f->next = c->api->followers;
    f->again = loop_timer(c->api->config.loop, send_on, f);
    c->api->followers = f;
    if (j.now.run > 0)
        open_log(f, f->run ? f->run : j.now.run);
    if (f->reader && tail != UINT64_MAX && joblog_reader_tail(f->reader, tail, e) < 0)
        log_event(c->api->config.log, LOG_WARN_, "log.tail", "why=%s", e->msg);
    http_stream_begin(c->rq, 200,
                      want.format == LOG_AS_FRAMES ? "application/octet-stream"
                                                   : "text/plain; charset=utf-8",
                      on_close, f);
    send_on(f);
    return 0;
}
