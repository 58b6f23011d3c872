/* The output of a job: all of it, its end, or as it comes. */
#include <stdio.h>

#include "api/grep.h"
#include "api/state.h"
#include "base/date.h"
#include "base/parse.h"
#include "store/kept.h"
#include "wire/joblog.h"
#include "wire/stream.h"

#define CHUNK (256u << 10) /* handed to the connection at a time */
#define FOLLOWERS_MAX 4096
#define GREPS_MAX 256          /* of them: they keep lines */
#define LOOKED_AT (512u << 10) /* for a word, before others have their turn: a few milliseconds */

enum log_format {
    LOG_AS_TEXT,
    LOG_AS_RECORDS,
    LOG_AS_FRAMES,
    LOG_AS_FRAMED_RECORDS
};

static bool is_framed(enum log_format f)
{
    return f == LOG_AS_FRAMES || f == LOG_AS_FRAMED_RECORDS;
}

struct follower {
    struct api *api;
    struct http_request *rq;
    char user[sizeof((struct identity *)0)->user];
    uint64_t job;
    uint32_t run, replica; /* run 0: the latest, and those after it */
    uint32_t opened;       /* the run whose log is open */
    bool ends_early;       /* before the job does */
    uint64_t lost;         /* segments that are told of */
    bool placed;           /* framed: the place it begins at was told */
    enum log_format format;
    bool follow;
    struct grep *grep; /* NULL: all of it is wanted */
    bool has_context;
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
    grep_free(f->grep);
    free(f);
}

static void on_close(void *ctx)
{
    follower_free(ctx);
}

static void put_text(enum log_format format, const struct joblog_record *r, struct buf *out)
{
    char when[32];
    if (format == LOG_AS_RECORDS || format == LOG_AS_FRAMED_RECORDS)
        buf_printf(out, "%s %s %c ", date_stamp(r->t_us / 1000, when),
                   joblog_stream_name(r->stream), r->full ? 'F' : 'P');
    buf_add(out, r->text);
    if (r->full || format != LOG_AS_TEXT)
        buf_addc(out, '\n');
}

/* What goes out next.  Lines that follow one another on one stream are one frame: a frame is a write
 * at the other end. */
struct sending {
    struct buf out;
    struct buf text; /* framed: of `type`, not in `out` yet */
    enum stream_type type;
};

static struct sending sending_new(void)
{
    /* A record more than CHUNK, or the lines that a match brings along. */
    return (struct sending){ .out = BUF(2 * CHUNK + GREP_KEPT_MAX + GREP_LINE_MAX),
                             .text = BUF(STREAM_PAYLOAD_MAX) };
}

static void sending_clear(struct sending *s)
{
    buf_free(&s->out);
    buf_free(&s->text);
}

static void sending_flush(struct sending *s)
{
    if (s->text.n)
        stream_put(&s->out, s->type, buf_str(&s->text));
    buf_truncate(&s->text, 0);
}

static void put_record(const struct follower *f, const struct joblog_record *r, struct sending *s)
{
    enum stream_type type = r->stream == JOBLOG_STDERR ? STREAM_STDERR : STREAM_STDOUT;
    if (r->stream == JOBLOG_META && f->format == LOG_AS_TEXT)
        return;
    if (r->stream == JOBLOG_META && f->format == LOG_AS_FRAMES) {
        sending_flush(s);
        stream_put_note(&s->out, r->text);
    } else if (is_framed(f->format)) {
        if (s->type != type || s->text.n + JOBLOG_RECORD_MAX + 1 > STREAM_PAYLOAD_MAX)
            sending_flush(s);
        s->type = type;
        put_text(f->format == LOG_AS_FRAMES ? LOG_AS_TEXT : f->format, r, &s->text);
    } else {
        put_text(f->format, r, &s->out);
    }
}

/* The log keeps the newest, and a job does not wait for those who read it. */
static void put_losses(struct follower *f, struct sending *s)
{
    uint64_t lost = f->reader ? joblog_reader_lost_segments(f->reader) : 0;
    if (lost > f->lost && is_framed(f->format))
        stream_put_note(&s->out, STR("some of its output was overwritten before it could be shown: "
                                     "it writes faster than this is read"));
    f->lost = lost;
}

struct found {
    const struct follower *f;
    struct sending *s;
};

/* A line that was found, as records again. */
static void put_found(void *ctx, const struct grep_line *l)
{
    const struct found *x = ctx;
    struct joblog_record r = { .t_us = l->t_us, .stream = l->stream, .full = true };
    struct str rest = l->text;
    r.text = STR("--");
    if (l->gap)
        put_record(x->f, &r, x->s);
    do {
        r.text = (struct str){ rest.p, MIN(rest.n, (size_t)JOBLOG_TEXT_MAX) };
        rest = (struct str){ rest.p + r.text.n, rest.n - r.text.n };
        r.full = l->full && rest.n == 0;
        put_record(x->f, &r, x->s);
    } while (rest.n);
}

/* Lines that nobody ended, of a log that has no more. */
static void put_last(struct follower *f, struct sending *s)
{
    if (f->grep)
        grep_end(f->grep, put_found, &(struct found){ f, s });
    sending_flush(s);
}

/* Records until there is enough, or enough was looked at.  As joblog_reader_next. */
static int put_records(struct follower *f, struct sending *s, struct err *e)
{
    struct joblog_record r;
    size_t looked_at = 0;
    int got = 0;
    while (s->out.n < CHUNK && looked_at < LOOKED_AT && f->reader &&
           (got = joblog_reader_next(f->reader, &r, e)) == 1) {
        if (!f->grep || r.stream == JOBLOG_META) {
            put_record(f, &r, s);
            continue;
        }
        grep_feed(f->grep, &r, put_found, &(struct found){ f, s });
        looked_at += JOBLOG_PREFIX_MAX + r.text.n;
    }
    sending_flush(s);
    put_losses(f, s);
    return got;
}

/* Where a client that was cut off may take it up again.  Of what was found: only where the same would
 * be found from there on, which is between lines, and with lines around them at the beginning. */
static void put_place(const struct follower *f, struct buf *out)
{
    bool same = !f->grep || !f->placed || (grep_is_between(f->grep) && !f->has_context);
    if (is_framed(f->format) && f->reader && same)
        stream_put_logged(out, &(struct stream_place){ f->opened, joblog_reader_place(f->reader) });
}

/* The job as the store has it: its end is told when it is on the disk. */
static bool job_ended(const struct follower *f, struct arena *a, struct store_job_now *out)
{
    struct store_scope all = { .everything = true };
    struct store_job j;
    struct err e;
    if (store_job_brief(f->api->config.store, &all, f->job, a, &j, &e) < 0)
        return true; /* it is gone altogether */
    *out = j.now;
    return job_state_ended(j.now.state);
}

static void put_end(const struct follower *f, const struct store_job_now *n, struct buf *out)
{
    struct stream_exit how = { .code = n->exit_code & 0xff, .signal = n->exit_signal & 0x7f };
    if (!is_framed(f->format))
        return;
    if (n->state == JOB_CANCELLED && !how.code && !how.signal)
        how.signal = 15;
    stream_put_note(out, n->message);
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
    struct err e;
    int got = 1;
    while (got == 1) {
        AUTO(sending_clear) struct sending s = sending_new();
        got = put_records(f, &s, &e);
        if (got != 1)
            put_last(f, &s);
        if (s.out.n && !http_stream_write(f->rq, buf_str(&s.out)))
            return false;
    }
    return true;
}

/* Sends what there is; ends when the job has ended, or at once when nobody follows. */
static void send_on(void *ctx)
{
    struct follower *f = ctx;
    AUTO(sending_clear) struct sending s = sending_new();
    AUTO(arena_free) struct arena a = { 0 };
    struct store_job_now now = { 0 };
    struct err e;
    bool ended = job_ended(f, &a, &now); /* asked first: what it wrote before is then all there */
    if (http_stream_queued(f->rq) > CHUNK)
        return; /* on_room */
    if (!f->placed && f->reader)
        put_place(f, &s.out);
    f->placed = f->reader;
    size_t head = s.out.n;
    int got = put_records(f, &s, &e);
    bool over = got != 1 && (ended || !f->follow);
    if (over)
        put_last(f, &s);
    if (s.out.n > head)
        put_place(f, &s.out);
    if (got < 0)
        log_event(f->api->config.log, LOG_WARN_, "log.read", "job=%llu why=%s",
                  (unsigned long long)f->job, e.msg);
    if (over && ended && !f->ends_early)
        put_end(f, &now, &s.out);
    if (s.out.n && !http_stream_write(f->rq, buf_str(&s.out)))
        return;
    if (over)
        finish(f);
    else if (got == 1)
        loop_timer_set(f->again, f->grep ? 1 : 0,
                       0); /* no connection's queue slows a search down */
}

static void on_room(void *ctx)
{
    loop_timer_set(((struct follower *)ctx)->again, 0, 0);
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
    f->placed = false;
    f->lost = 0;
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
    if (!want && store_job_brief(f->api->config.store, &all, f->job, &a, &j, &e) == 0)
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

void followers_end_of(struct api *a, struct str user)
{
    for (struct follower *f = a->followers, *next; f; f = next) {
        next = f->next;
        if (str_is(user, f->user))
            finish(f);
    }
}

static enum log_format read_format(const struct call *c)
{
    static const char *const words[] = { "text", "records", "frames", "framed-records" };
    struct str text = query_text(c, "format");
    size_t i = ARRAY_LEN(words) - 1;
    while (i > LOG_AS_TEXT && !str_is(text, words[i]))
        i--;
    return (enum log_format)i;
}

/* What may be asked of a log, besides its format. */
struct log_want {
    uint64_t replica, run, tail;
    bool has_from, has_until;
    struct stream_place from, until;
    struct grep_want grep; /* without a word: all of it */
};

static struct log_want read_want(const struct call *c)
{
    struct log_want w = { .replica = query_number(c, "replica", 0),
                          .run = query_number(c, "run", 0),
                          .tail = query_number(c, "tail", UINT64_MAX) };
    w.grep = (struct grep_want){ .word = query_text(c, "grep"),
                                 .ignore_case = query_flag(c, "ignore_case"),
                                 .context = (uint32_t)query_number(c, "context", 0) };
    w.has_from = query_place(c, "from", &w.from);
    w.has_until = query_place(c, "until", &w.until);
    return w;
}

/* To where it shall begin.  A run that was left meanwhile is left out: it is told as another one. */
static int seek(struct follower *f, const struct log_want *w, struct err *e)
{
    if (!f->reader)
        return 0;
    if (w->has_until)
        joblog_reader_end_at(f->reader, &w->until.at);
    if (w->has_from && (w->from.run == 0 || w->from.run == f->opened))
        return joblog_reader_seek(f->reader, &w->from.at, e);
    return w->tail == UINT64_MAX ? 0 : joblog_reader_tail(f->reader, w->tail, e);
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
    char when[32], age[32];
    if (store_log_get(c->api->config.store, job, &log, e) < 0)
        return e->code == ERR_NOT_FOUND ? 0 : -1;
    if (log.removed_ms == 0)
        return 0;
    int64_t age_ms = MAX(log.removed_ms - c->job.now.ended_ms, INT64_C(0)) / 1000 * 1000;
    enum store_log_why why = log.why < STORE_LOG_WHY_COUNT ? log.why : LOG_AGE;
    err_set(e, ERR_NOT_FOUND, "the output of job %llu was removed on %s, %s after its end: %s",
            (unsigned long long)job, date_stamp(log.removed_ms, when),
            format_duration_ms(age_ms, age), whys[why].why);
    return err_hint(e, "how long it is kept is %s in the settings of nightshiftd", whys[why].key);
}

static int check_readers(const struct call *c, bool searches, struct err *e)
{
    size_t open = 0, greps = 0;
    for (const struct follower *f = c->api->followers; f; f = f->next) {
        open++;
        greps += f->grep != NULL;
    }
    if (open >= FOLLOWERS_MAX)
        return err_set(e, ERR_UNAVAILABLE, "%zu clients read logs already", open);
    if (searches && greps >= GREPS_MAX)
        return err_set(e, ERR_UNAVAILABLE, "%zu clients search in logs already", greps);
    return 0;
}

int api_job_log(struct call *c, struct err *e)
{
    struct follower want = {
        .api = c->api, .rq = c->rq, .follow = query_flag(c, "follow"), .format = read_format(c)
    };
    struct log_want w = read_want(c);
    uint64_t id = c->job.fixed.id;
    if (check_kept(c, id, e) < 0)
        return -1;
    if (w.replica >= c->job.fixed.replicas) {
        c->field = "replica";
        return err_set(e, ERR_NOT_FOUND, "query 'replica': job %llu has replicas 0 to %u",
                       (unsigned long long)id, c->job.fixed.replicas - 1);
    }
    if (check_readers(c, w.grep.word.n > 0, e) < 0)
        return -1;
    struct follower *f = xcalloc(1, sizeof *f);
    *f = want;
    memcpy(f->user, c->who.user, sizeof f->user);
    f->job = id;
    f->run = (uint32_t)w.run;
    f->replica = (uint32_t)w.replica;
    f->ends_early = w.has_until;
    f->grep = w.grep.word.n ? grep_new(&w.grep) : NULL;
    f->has_context = w.grep.context > 0;
    f->next = c->api->followers;
    f->again = loop_timer(c->api->config.loop, send_on, f);
    c->api->followers = f;
    if (c->job.now.run > 0)
        open_log(f, f->run ? f->run : c->job.now.run);
    if (seek(f, &w, e) < 0)
        log_event(c->api->config.log, LOG_WARN_, "log.seek", "why=%s", e->msg);
    http_stream_begin(
        c->rq, 200, is_framed(f->format) ? "application/octet-stream" : "text/plain; charset=utf-8",
        on_close, f);
    http_stream_on_room(c->rq, on_room);
    send_on(f);
    return 0;
}
