/* A task's output: the API server's log of its container, followed line by line into the files that
 * everybody reads a log from (wire/joblog.h).  Lines come with their times; so whatever cuts the stream, or
 * stops us, reading goes on exactly behind the last line that was written down. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/date.h"
#include "engine/kube/state.h"
#include "sys/file.h"
#include "wire/ring.h"

#define LINE_MAX_BYTES (1u << 20)
#define AGAIN_FIRST_MS 500
#define AGAIN_MOST_MS UINT64_C(60000)
#define TAIL_LINES 4096u /* those of one microsecond are among them */

struct follow {
    struct kube *k;
    char space[SPACE_MAX], pod[POD_NAME_MAX];
    struct kube_stream *stream;
    struct loop_watch *again;
    uint64_t again_ms;
    int fd[JOBLOG_SEGMENTS];
    struct ring ring;
    struct buf line;
    int64_t last_us;   /* of the last line that was written */
    uint64_t last_n;   /* so many of that time were */
    uint64_t passed;   /* of these, so many have come again */
    bool ended;        /* its program has: what there is is all */
    bool final;        /* the stream that is open was opened after that */
    bool over, broken; /* broken: it cannot be written */
};

/* ---- lines ---- */

/* What is after the milliseconds: up to six digits of "….250123456Z". */
static int64_t micros_of(struct str when)
{
    const char *dot = memchr(when.p, '.', when.n);
    int64_t us = 0, unit = 100000;
    for (size_t i = dot ? (size_t)(dot - when.p) + 1 : when.n; i < when.n && unit;
         i++, unit /= 10) {
        if (when.p[i] < '0' || when.p[i] > '9')
            break;
        us += (when.p[i] - '0') * unit;
    }
    return us % 1000;
}

/* "2026-03-01T12:30:00.250123456Z text" */
static bool take_time(struct str *line, int64_t *out_us)
{
    const char *blank = line->n ? memchr(line->p, ' ', line->n) : NULL;
    struct str when = { line->p, blank ? (size_t)(blank - line->p) : 0 };
    int64_t ms;
    struct err e;
    if (!blank || when.n > 40 || date_parse(when, &ms, &e) < 0)
        return false;
    *out_us = ms * 1000 + micros_of(when);
    *line = (struct str){ blank + 1, line->n - when.n - 1 };
    return true;
}

static void write_line(struct follow *f, struct str line)
{
    int64_t t_us = f->last_us;
    take_time(&line, &t_us); /* the rest of a long line has none */
    if (t_us < f->last_us)
        return; /* it is there already */
    if (t_us == f->last_us && f->passed < f->last_n) {
        f->passed++;
        return;
    }
    if (t_us != f->last_us)
        f->last_n = 0;
    f->last_us = t_us;
    f->passed = ++f->last_n;
    AUTO(buf_free) struct buf whole = BUF(LINE_MAX_BYTES + 1);
    buf_add(&whole, line);
    buf_addc(&whole, '\n');
    ring_write(&f->ring, t_us, JOBLOG_STDOUT, buf_str(&whole));
}

static bool on_data(void *ctx, struct str chunk)
{
    struct follow *f = ctx;
    while (chunk.n) {
        const char *lf = memchr(chunk.p, '\n', chunk.n);
        size_t n = lf ? (size_t)(lf - chunk.p) : chunk.n;
        buf_add(&f->line, (struct str){ chunk.p, MIN(n, LINE_MAX_BYTES - f->line.n) });
        chunk = (struct str){ chunk.p + n + (lf != NULL), chunk.n - n - (lf != NULL) };
        if (!lf && f->line.n < LINE_MAX_BYTES)
            return true;
        write_line(f, buf_str(&f->line));
        buf_truncate(&f->line, 0);
    }
    return true;
}

/* ---- the stream ---- */

static void open_stream(void *ctx);

static void open_later(struct follow *f, int64_t at_least_ms)
{
    loop_timer_set(f->again, MAX(f->again_ms, (uint64_t)at_least_ms), 0);
    f->again_ms = MIN(f->again_ms * 2, AGAIN_MOST_MS);
}

static void on_end(void *ctx, const struct kube_reply *r)
{
    struct follow *f = ctx;
    bool whole = r->status == 200 && !r->err.code;
    f->stream = NULL;
    if (f->line.n) {
        write_line(f, buf_str(&f->line));
        buf_truncate(&f->line, 0);
    }
    if (whole)
        f->again_ms = AGAIN_FIRST_MS;
    /* A pod whose log is not there any more, or never was, has none. */
    if (f->ended && ((whole && f->final) || r->status == 404 || r->status == 400))
        f->over = true;
    else
        open_later(f, r->retry_after_ms);
}

static void open_stream(void *ctx)
{
    struct follow *f = ctx;
    char path[512], since[64] = "", when[32];
    if (f->last_us) {
        date_stamp(f->last_us / 1000, when);
        snprintf(since, sizeof since, "&sinceTime=%s", when);
    }
    snprintf(path, sizeof path,
             "/api/v1/namespaces/%s/pods/%s/log?container=" POD_CONTAINER "&timestamps=true%s%s",
             f->space, f->pod, f->ended ? "" : "&follow=true", since);
    f->final = f->ended;
    f->passed = 0;
    f->stream = kube_open(f->k->client, str_of(path), 0, on_data, on_end, f);
}

/* ---- files ---- */

static void find_last(struct follow *f)
{
    struct joblog_reader *reader = joblog_reader_new(f->fd);
    struct joblog_record rec;
    struct err e;
    if (joblog_reader_tail(reader, TAIL_LINES, &e) == 0)
        while (joblog_reader_next(reader, &rec, &e) > 0) {
            if (rec.stream == JOBLOG_META || !rec.full)
                continue;
            f->last_n = rec.t_us == f->last_us ? f->last_n + 1 : 1;
            f->last_us = rec.t_us;
        }
    joblog_reader_free(reader);
}

static bool open_files(struct follow *f, const struct task *t)
{
    char dir[4096], path[4160], text[64];
    snprintf(dir, sizeof dir, "%s/tasks", f->k->config.state);
    mkdir(dir, 0711);
    snprintf(dir, sizeof dir, "%s/tasks/%s", f->k->config.state, task_format(t->id, text));
    mkdir(dir, 0700);
    for (int i = 0; i < JOBLOG_SEGMENTS; i++) {
        snprintf(path, sizeof path, "%s/log.%d", dir, i);
        f->fd[i] = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (f->fd[i] < 0)
            return false;
    }
    return true;
}

struct follow *follow_new(struct kube *k, const struct task *t)
{
    struct follow *f = xcalloc(1, sizeof *f);
    *f = (struct follow){ .k = k, .again_ms = AGAIN_FIRST_MS, .line = BUF(LINE_MAX_BYTES + 1) };
    for (int i = 0; i < JOBLOG_SEGMENTS; i++)
        f->fd[i] = -1;
    snprintf(f->space, sizeof f->space, "%s", t->space);
    snprintf(f->pod, sizeof f->pod, "%s", t->pod);
    f->again = loop_timer(k->config.loop, open_stream, f);
    if (!open_files(f, t)) {
        char text[64];
        log_event(k->config.log, LOG_ERROR_, "log.files", "task=%s", task_format(t->id, text));
        f->broken = f->over = true;
        return f;
    }
    ring_resume(&f->ring, f->fd, k->config.log_bytes, kube_now_ms(k) * 1000);
    find_last(f);
    open_stream(f);
    return f;
}

bool follow_over(const struct follow *f)
{
    return f->over;
}

void follow_end_soon(struct follow *f)
{
    if (f->ended)
        return;
    f->ended = true;
    if (!f->stream && !f->over) /* what came after it was cut is fetched once more */
        loop_timer_set(f->again, 0, 0);
    else
        f->final = true; /* the server ends it when it has sent the last line */
}

struct follow *follow_free(struct follow *f)
{
    if (!f)
        return NULL;
    kube_close(f->stream);
    loop_unwatch(f->again);
    if (!f->broken)
        ring_end(&f->ring, kube_now_ms(f->k) * 1000);
    for (int i = 0; i < JOBLOG_SEGMENTS; i++)
        file_close_p(&f->fd[i]);
    buf_free(&f->line);
    free(f);
    return NULL;
}
