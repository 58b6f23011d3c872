/* One verb on many jobs: one turn, one commit, one answer.
 *
 * A job that cannot be changed holds up no other: the answer names each with its reason.  When none can, the first
 * one's refusal is the answer, so that a single job is refused as by its own call. */
#include "api/state.h"

#include "base/arena.h"

#define ACT_JOBS_MAX 1000

struct acts {
    enum control_verb verb;
    struct str reason;
    uint64_t *job;
    size_t jobs;
};

static int read_verb_name(struct str name, enum control_verb *out, struct err *e)
{
    AUTO(buf_free) struct buf all = BUF(200);
    for (int v = 0; v < CONTROL_VERB_COUNT; v++) {
        const char *known = control_verb_name((enum control_verb)v);
        if (str_is(name, known)) {
            *out = (enum control_verb)v;
            return 0;
        }
        buf_printf(&all, "%s%s", v ? ", " : "", known);
    }
    err_set(e, ERR_INVALID, "field 'verb': '%.*s' is none", (int)MIN(name.n, (size_t)20), name.p);
    return err_hint(e, "there are: %s", buf_str(&all).p);
}

static int bad_jobs(struct err *e)
{
    err_set(e, ERR_INVALID, "field 'jobs' must be a list of 1 to %d numbers", ACT_JOBS_MAX);
    err_hint(e, "e.g. {\"verb\": \"cancel\", \"jobs\": [17, 18]}");
    return -1;
}

static int read_jobs(struct call *c, const struct json *list, struct acts *out, struct err *e)
{
    struct err none;
    size_t n = list && json_is_array(list) ? json_len(list) : 0;
    if (n == 0 || n > ACT_JOBS_MAX)
        return bad_jobs(e);
    out->job = arena_array(http_arena(c->rq), uint64_t, n);
    for (const struct json *v = json_first(list); v && out->jobs < n; v = json_next(list, v))
        if (json_as_u64(v, NUMBER_MAX, &out->job[out->jobs++], &none) < 0)
            return bad_jobs(e);
    return 0;
}

static int read_acts(struct call *c, const struct json *o, struct acts *out, struct err *e)
{
    struct str name;
    c->field = "verb";
    if (json_need_str(o, "verb", 20, &name, e) < 0 || read_verb_name(name, &out->verb, e) < 0)
        return -1;
    c->field = "reason";
    if (json_get_str(o, "reason", REASON_MAX, &out->reason, e) < 0)
        return -1;
    c->field = "jobs";
    if (read_jobs(c, json_find(o, "jobs"), out, e) < 0)
        return -1;
    c->field = NULL;
    return 0;
}

static int act(struct call *c, const struct acts *x, uint64_t id, struct arena *a, struct err *e)
{
    if (store_job_brief(c->api->config.store, &c->scope, id, a, &c->job, e) < 0 ||
        need_job(c, c->route->access, e) < 0)
        return -1;
    return act_on_job(c, x->verb, x->reason, (struct control_done){ 0 }, e);
}

static void put_refused(struct json_out *w, uint64_t id, const struct err *e)
{
    json_begin(w, NULL, '{');
    json_put_u64(w, "job", id);
    json_put_str(w, "code", str_of(err_info(e->code)->slug));
    json_put_str(w, "detail", str_of(e->msg));
    json_put_str(w, "hint", str_of(e->hint));
    json_end(w, '}');
}

struct done {
    struct http_request *rq;
    const char *text;
};

static void on_done(void *ctx)
{
    const struct done *d = ctx;
    http_reply(d->rq, 200, "application/json", str_of(d->text));
}

int api_job_act(struct call *c, struct err *e)
{
    static const char *const keys[] = { "verb", "jobs", "reason" };
    AUTO(json_free_p) struct json_doc *d = NULL;
    AUTO(arena_free) struct arena a = { 0 };
    AUTO(buf_free) struct buf b = BUF(API_REPLY_MAX);
    struct json_out w = { .b = &b };
    struct acts x = { 0 };
    struct err first = { 0 };
    uint64_t changed = 0;
    if (read_body(c, keys, ARRAY_LEN(keys), &d, e) < 0 || read_acts(c, json_root(d), &x, e) < 0)
        return -1;
    json_begin(&w, NULL, '{');
    json_begin(&w, "refused", '[');
    for (size_t i = 0; i < x.jobs; i++) {
        struct err one = { 0 };
        arena_reset(&a); /* a job's spec may be long */
        if (act(c, &x, x.job[i], &a, &one) < 0) {
            put_refused(&w, x.job[i], &one);
            first = first.code ? first : one;
        } else {
            changed++;
        }
    }
    json_end(&w, ']');
    json_put_u64(&w, "changed", changed);
    json_end(&w, '}');
    if (!changed || buf_check(&b, e) < 0) {
        *e = changed ? *e : first;
        return -1;
    }
    struct done *done = arena_new(http_arena(c->rq), struct done);
    *done = (struct done){ c->rq, arena_strndup(http_arena(c->rq), b.p, b.n) };
    control_commit(c->api->config.control, (struct control_done){ on_done, done });
    return 0;
}
