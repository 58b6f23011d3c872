/* A word in the output of many jobs: the latest run of each that the caller may read, the newest job first.
 * It goes on beside everything else, a piece at a time, and ends at a bound that the answer names. */
#include "api/search.h"

#include "api/grep.h"
#include "api/state.h"

#define JOBS_DEFAULT 100
#define PIECE (512u << 10)              /* looked at in one go: a few milliseconds */
#define BYTES_MAX (UINT64_C(256) << 20) /* looked at for one request */
#define OPEN_BYTES 16384u               /* what opening a log counts as */
#define LINES_MAX 1000u                 /* found by one request */
#define LINES_OF_JOB_MAX 100u           /* so that one job does not hide all others */
#define TEXT_MAX ((size_t)1000)         /* of a line, as it is shown */
#define TEXT_BEFORE ((size_t)200)       /* of it before the word */
#define REPLY_MAX (16u << 20)           /* a thousand such lines, each byte escaped, fit */
#define SEARCHINGS_MAX 4
#define SEARCHINGS_OF_USER_MAX 1

struct searching {
    struct api *api;
    struct http_request *rq;
    char user[sizeof((struct identity *)0)->user];
    struct grep_want want;
    const struct store_job **job; /* those that may be read */
    size_t n, at;
    uint64_t next; /* of the list: where it goes on; 0: nowhere */
    uint32_t replica;
    struct joblog_reader *reader; /* of job[at]; NULL: to be opened */
    struct grep *grep;
    uint64_t bytes, counted; /* counted: with what opening costs */
    uint32_t searched, lines, lines_of_job;
    bool has_log;    /* some of job[at] was there */
    const char *cut; /* NULL: not so far */
    struct buf out;
    struct json_out w;
    struct loop_watch *again;
    struct searching *next_one;
};

static void searching_free(struct searching *s)
{
    struct searching **at = &s->api->searchings;
    while (*at != s)
        at = &(*at)->next_one;
    *at = s->next_one;
    loop_unwatch(s->again);
    joblog_reader_free(s->reader);
    grep_free(s->grep);
    buf_free(&s->out);
    free(s);
}

static void refuse(struct searching *s, const char *why)
{
    struct err e;
    err_set(&e, ERR_UNAVAILABLE, "%s", why);
    err_hint(&e, "search again");
    http_reply_error(s->rq, &e, NULL);
    searching_free(s);
}

void searchings_free(struct api *a)
{
    while (a->searchings)
        refuse(a->searchings, "the server is being stopped");
}

void searchings_end_of(struct api *a, struct str user)
{
    for (struct searching *s = a->searchings, *next; s; s = next) {
        next = s->next_one;
        if (str_is(user, s->user))
            refuse(s, "what you may see has changed meanwhile");
    }
}

/* ---- the answer ---- */

static bool is_inside_character(struct str s, size_t at)
{
    return at > 0 && at < s.n && ((unsigned char)s.p[at] & 0xc0) == 0x80;
}

/* Of a long line what stands around the word. */
static void put_text(struct json_out *w, const struct grep_line *l)
{
    AUTO(buf_free) struct buf b = BUF(TEXT_MAX + 8);
    size_t from = l->text.n > TEXT_MAX && l->at > TEXT_BEFORE ? l->at - TEXT_BEFORE : 0;
    size_t to = from + MIN(l->text.n - from, TEXT_MAX);
    for (int i = 0; i < 3 && is_inside_character(l->text, from); i++)
        from++;
    for (int i = 0; i < 3 && is_inside_character(l->text, to); i++)
        to--;
    if (from > 0)
        buf_addz(&b, "…");
    buf_add(&b, (struct str){ l->text.p + from, to - from });
    if (to < l->text.n)
        buf_addz(&b, "…");
    json_put_str(w, "text", buf_str(&b));
}

static void begin_job(struct searching *s)
{
    const struct store_job *j = s->job[s->at];
    json_begin(&s->w, NULL, '{');
    json_put_u64(&s->w, "id", j->fixed.id);
    json_put_str(&s->w, "name", j->fixed.name);
    json_put_str(&s->w, "user", j->fixed.user);
    json_put_str(&s->w, "tenant", j->fixed.tenant);
    json_put_str(&s->w, "state", str_of(job_state_name(j->now.state)));
    json_begin(&s->w, "lines", '[');
}

static void on_found(void *ctx, const struct grep_line *l)
{
    struct searching *s = ctx;
    if (s->lines >= LINES_MAX || s->lines_of_job >= LINES_OF_JOB_MAX)
        return;
    if (s->lines_of_job == 0)
        begin_job(s);
    json_begin(&s->w, NULL, '{');
    json_put_u64(&s->w, "replica", s->replica);
    json_put_str(&s->w, "stream", str_of(joblog_stream_name(l->stream)));
    json_put_i64(&s->w, "t_ms", l->t_us / 1000);
    put_text(&s->w, l);
    json_end(&s->w, '}');
    s->lines++;
    s->lines_of_job++;
}

static void answer(struct searching *s)
{
    struct call c = { .api = s->api, .rq = s->rq };
    json_end(&s->w, ']');
    json_put_u64(&s->w, "searched", s->searched);
    json_put_u64(&s->w, "bytes", s->bytes);
    json_put_u64(&s->w, "lines", s->lines);
    if (s->cut)
        json_put_str(&s->w, "cut", str_of(s->cut));
    else
        json_put_null(&s->w, "cut");
    if (s->next)
        json_put_u64(&s->w, "next", s->next);
    else
        json_put_null(&s->w, "next");
    json_end(&s->w, '}');
    reply_json(&c, 200, &s->out);
    searching_free(s);
}

/* ---- the search ---- */

/* A log that is not there was removed, or has not begun: it has no such line. */
static bool open_log(struct searching *s)
{
    char dir[4096];
    struct err e;
    const struct engine *en = control_engine(s->api->config.control);
    const struct store_job *j = s->job[s->at];
    struct task_id t = { j->fixed.id, j->now.run, s->replica };
    en->ops->log_dir(en->self, t, dir, sizeof dir);
    s->reader = joblog_reader_open(dir, &e);
    s->grep = s->reader ? grep_new(&s->want) : NULL;
    s->has_log = s->has_log || s->reader;
    s->counted += OPEN_BYTES;
    return s->reader;
}

static void close_log(struct searching *s)
{
    s->reader = joblog_reader_free(s->reader);
    s->grep = grep_free(s->grep);
}

/* more: not all of it was looked at. */
static void leave_job(struct searching *s, bool more)
{
    close_log(s);
    if (s->lines_of_job) {
        json_end(&s->w, ']');
        json_put_bool(&s->w, "more", more);
        json_end(&s->w, '}');
    }
    s->lines_of_job = 0;
    s->replica = 0;
    s->searched += s->has_log;
    s->has_log = false;
    s->at++;
}

/* The end of this replica's log, or one that cannot be read. */
static void leave_log(struct searching *s)
{
    if (s->grep)
        grep_end(s->grep, on_found, s);
    close_log(s);
    if (++s->replica >= s->job[s->at]->fixed.replicas)
        leave_job(s, false);
}

/* A bound in the middle of a job: the search can go on behind it. */
static void cut(struct searching *s, const char *why)
{
    s->cut = why;
    s->next = s->job[s->at]->fixed.id;
    leave_job(s, true);
}

static void look_on(struct searching *s)
{
    struct joblog_record r;
    struct err e;
    if (!s->reader && !open_log(s)) {
        leave_log(s);
    } else if (joblog_reader_next(s->reader, &r, &e) != 1) {
        leave_log(s);
    } else {
        grep_feed(s->grep, &r, on_found, s);
        s->bytes += r.text.n;
        s->counted += JOBLOG_PREFIX_MAX + r.text.n;
        if (s->lines >= LINES_MAX)
            cut(s, "lines");
        else if (s->lines_of_job >= LINES_OF_JOB_MAX)
            leave_job(s, true);
        else if (s->counted >= BYTES_MAX)
            cut(s, "bytes");
    }
}

static void search_on(void *ctx)
{
    struct searching *s = ctx;
    uint64_t until = s->counted + PIECE;
    while (s->counted < until && s->at < s->n && !s->cut)
        look_on(s);
    bool whole = s->at >= s->n && !s->cut; /* the list of jobs was */
    if (whole && s->next)
        s->cut = "jobs";
    if (whole || s->cut)
        answer(s);
    else
        loop_timer_set(s->again, 1, 0); /* not at once: others have their turn */
}

static int check_searchings(const struct call *c, struct err *e)
{
    size_t all = 0, own = 0;
    for (const struct searching *s = c->api->searchings; s; s = s->next_one) {
        all++;
        own += str_is(str_of(c->who.user), s->user);
    }
    if (all < SEARCHINGS_MAX && own < SEARCHINGS_OF_USER_MAX && !c->api->stopping)
        return 0;
    if (own >= SEARCHINGS_OF_USER_MAX)
        err_set(e, ERR_UNAVAILABLE, "a search of yours goes on already");
    else
        err_set(e, ERR_UNAVAILABLE, "%zu searches go on already", all);
    return err_hint(e, "search again in some seconds");
}

/* Whose output may be read is decided here, job by job, as for the log of one. */
static int find_jobs(struct call *c, struct searching *s, struct err *e)
{
    struct arena *a = http_arena(c->rq);
    struct store_filter f = { .user = query_text(c, "user"),
                              .tenant = query_text(c, "tenant"),
                              .name = query_text(c, "name"),
                              .before = query_number(c, "before", 0),
                              .limit = (uint32_t)query_number(c, "limit", JOBS_DEFAULT) };
    struct store_jobs jobs;
    if (store_jobs_list(c->api->config.store, &c->scope, &f, a, &jobs, e) < 0)
        return -1;
    s->job = arena_array(a, const struct store_job *, jobs.n + 1);
    for (size_t i = 0; i < jobs.n; i++)
        if (jobs.v[i].now.run > 0 && may_read_job(c, &jobs.v[i]))
            s->job[s->n++] = &jobs.v[i];
    s->next = jobs.n == f.limit ? jobs.v[jobs.n - 1].fixed.id : 0;
    return 0;
}

int api_log_search(struct call *c, struct err *e)
{
    struct searching found = { .api = c->api,
                               .rq = c->rq,
                               .want = { .word = query_text(c, "grep"),
                                         .ignore_case = query_flag(c, "ignore_case") },
                               .out = BUF(REPLY_MAX) };
    if (check_searchings(c, e) < 0 || find_jobs(c, &found, e) < 0)
        return -1;
    struct searching *s = xcalloc(1, sizeof *s);
    *s = found;
    memcpy(s->user, c->who.user, sizeof s->user);
    s->w = (struct json_out){ .b = &s->out };
    json_begin(&s->w, NULL, '{');
    json_begin(&s->w, "jobs", '[');
    s->next_one = c->api->searchings;
    c->api->searchings = s;
    s->again = loop_timer(c->api->config.loop, search_on, s);
    loop_timer_set(s->again, 0, 0);
    return 0;
}
