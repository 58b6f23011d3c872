/* Jobs: list, show, submit, and what may be done with one. */
#include <stdio.h>

#include "api/state.h"
#include "base/parse.h"
#include "sys/weak.h"

#define PAGE_DEFAULT 100
#define PAGE_MAX 1000
#define BATCH_MAX 1000

/* ---- reading ---- */

static int read_states(struct call *c, uint32_t *out, struct err *e)
{
    const char *text = http_query(c->rq, "state");
    struct str rest = str_of(text ? text : ""), word;
    uint32_t bits = 0;
    c->field = "state";
    for (int s = 0; s < JOB_STATE_COUNT && rest.n == 0; s++)
        if (!job_state_ended((enum job_state)s))
            bits |= 1u << s;
    if (str_is(rest, "all"))
        rest = STR("");
    while (rest.n) {
        int s = 0;
        str_cut(rest, ',', &word, &rest);
        if (word.n == 0)
            continue;
        while (s < JOB_STATE_COUNT && !str_is(word, job_state_name((enum job_state)s)))
            s++;
        if (s == JOB_STATE_COUNT) {
            err_set(e, ERR_INVALID, "query 'state': '%.*s' is not a state", STR_ARG(word));
            return err_hint(e, "e.g. running, queued, failed, or all");
        }
        bits |= 1u << s;
    }
    c->field = NULL;
    *out = bits;
    return 0;
}

static struct str query_str(struct call *c, const char *key)
{
    const char *text = http_query(c->rq, key);
    return str_of(text ? text : "");
}

int api_job_list(struct call *c, struct err *e)
{
    uint64_t limit = PAGE_DEFAULT, since = 0;
    struct store_filter f = { .user = query_str(c, "user"),
                              .tenant = query_str(c, "tenant"),
                              .name = query_str(c, "name") };
    struct store_jobs jobs;
    if (read_states(c, &f.states, e) < 0 || query_u64(c, "limit", PAGE_MAX, &limit, e) < 0 ||
        query_u64(c, "before", INT64_MAX, &f.before, e) < 0 ||
        query_u64(c, "array", INT64_MAX, &f.array, e) < 0 ||
        query_u64(c, "since_ms", INT64_MAX, &since, e) < 0)
        return -1;
    f.ended_after_ms = (int64_t)since;
    f.limit = (uint32_t)MAX(limit, UINT64_C(1));
    if (store_jobs_list(c->api->config.store, &c->scope, &f, http_arena(c->rq), &jobs, e) < 0)
        return -1;
    AUTO(buf_free) struct buf b = BUF(API_REPLY_MAX);
    struct json_out w = { .b = &b };
    json_begin(&w, NULL, '{');
    json_begin(&w, "jobs", '[');
    for (size_t i = 0; i < jobs.n; i++)
        put_job(&w, NULL, c->api, &jobs.v[i], false);
    json_end(&w, ']');
    if (jobs.n == f.limit)
        json_put_u64(&w, "next", jobs.v[jobs.n - 1].fixed.id);
    else
        json_put_null(&w, "next");
    json_end(&w, '}');
    reply_json(c, 200, &b);
    return 0;
}

static bool is_theirs(const struct call *c, const struct store_job *j)
{
    return c->who.role == ROLE_ADMIN || str_is(j->fixed.user, c->who.user);
}

int find_job(struct call *c, uint64_t id, bool mine, struct store_job *out, struct err *e)
{
    struct store_job j;
    if (store_job_get(c->api->config.store, &c->scope, id, http_arena(c->rq), &j, e) < 0)
        return -1;
    if (mine && !is_theirs(c, &j) && !weak_here("owner")) {
        err_set(e, ERR_DENIED, "job %llu belongs to '%.*s'", (unsigned long long)id,
                STR_ARG(j.fixed.user));
        return err_hint(e, "its owner or an administrator can do this");
    }
    *out = j;
    return 0;
}

int reply_job(struct call *c, int status, uint64_t id, struct err *e)
{
    struct store_job j;
    AUTO(buf_free) struct buf b = BUF(API_REPLY_MAX);
    struct json_out w = { .b = &b };
    if (find_job(c, id, false, &j, e) < 0)
        return -1;
    put_job(&w, NULL, c->api, &j, is_theirs(c, &j) || weak_here("spec_owner"));
    reply_json(c, status, &b);
    return 0;
}

int api_job_get(struct call *c, struct err *e)
{
    uint64_t id;
    return read_id(c, &id, e) < 0 ? -1 : reply_job(c, 200, id, e);
}

int api_job_why(struct call *c, struct err *e)
{
    struct store_job j;
    struct explanation x = { 0 };
    struct control *ctl = c->api->config.control;
    uint64_t id;
    if (read_id(c, &id, e) < 0 || find_job(c, id, false, &j, e) < 0)
        return -1;
    bool waits = !job_state_ended(j.now.state) && !job_state_holds(j.now.state);
    int64_t now_ms = control_now_ms(ctl);
    if (waits && core_explain(control_core(ctl), (job_id){ id }, now_ms, &x, e) < 0)
        return -1;
    AUTO(buf_free) struct buf b = BUF(64 << 10);
    struct json_out w = { .b = &b };
    json_begin(&w, NULL, '{');
    json_put_u64(&w, "job", id);
    json_put_str(&w, "state", str_of(job_state_name(j.now.state)));
    json_put_i64(&w, "waited_ms", waits ? now_ms - j.fixed.submitted_ms : 0);
    json_begin(&w, "reasons", '[');
    for (size_t i = 0; i < x.n; i++) {
        json_begin(&w, NULL, '{');
        json_put_str(&w, "code", str_of(reason_slug(x.line[i].why)));
        json_put_str(&w, "text", str_of(x.line[i].text));
        json_end(&w, '}');
    }
    json_end(&w, ']');
    if (j.now.message.n)
        json_put_str(&w, "message", j.now.message);
    json_end(&w, '}');
    reply_json(c, 200, &b);
    return 0;
}

/* ---- submitting ---- */

static int use_profile(struct call *c, struct spec *s, struct err *e)
{
    const struct api_config *f = &c->api->config;
    if (s->profile.n == 0)
        return 0;
    c->field = "profile";
    for (size_t i = 0; i < f->profiles; i++) {
        const struct api_profile *p = &f->profile[i];
        if (!str_eq(s->profile, p->name))
            continue;
        struct request *r = &s->request;
        if (!r->gpus && !r->gpu_milli && !r->gpu_mem_mib) {
            r->gpus = p->request.gpus;
            r->gpu_milli = p->request.gpu_milli;
            r->gpu_mem_mib = p->request.gpu_mem_mib;
        }
        r->cpu_milli = r->cpu_milli ? r->cpu_milli : p->request.cpu_milli;
        r->mem_mib = r->mem_mib ? r->mem_mib : p->request.mem_mib;
        s->gpu_type = s->gpu_type.n ? s->gpu_type : p->gpu_type;
        c->field = NULL;
        return 0;
    }
    err_set(e, ERR_INVALID, "field 'profile': there is no profile '%.*s'", STR_ARG(s->profile));
    return err_hint(e, "see those of this site: GET /v1/profiles");
}

static int choose_tenant(struct call *c, struct spec *s, struct err *e)
{
    const struct auth *auth = c->api->config.auth;
    struct str user = str_of(c->who.user);
    c->field = "tenant";
    if (s->tenant.n == 0 && c->scope.n > 0)
        s->tenant = c->scope.tenant[0];
    if (s->tenant.n == 0)
        return err_set(e, ERR_DENIED, "'%s' is in no tenant", c->who.user);
    if (c->who.role < ROLE_ADMIN && !auth_is_member(auth, user, s->tenant) &&
        !weak_here("tenant_member")) {
        err_set(e, ERR_DENIED, "field 'tenant': '%s' is not a member of '%.*s'", c->who.user,
                STR_ARG(s->tenant));
        return err_hint(e, "your tenants: nightshift status");
    }
    c->field = NULL;
    return 0;
}

static int read_specs(struct call *c, const struct json *o, struct spec **out, size_t *out_n,
                      struct err *e)
{
    struct arena *a = http_arena(c->rq);
    const struct json *list = json_find(o, "jobs");
    size_t n = list ? json_len(list) : 1, i = 0;
    if (list && (!json_is_array(list) || n == 0 || n > BATCH_MAX)) {
        c->field = "jobs";
        return err_set(e, ERR_INVALID, "field 'jobs': a list of 1 to %d jobs is needed", BATCH_MAX);
    }
    struct spec *spec = arena_array(a, struct spec, n);
    for (const struct json *v = list ? json_first(list) : o; v;
         v = list ? json_next(list, v) : NULL, i++) {
        if (spec_read(v, a, &spec[i], &c->field, e) < 0 || use_profile(c, &spec[i], e) < 0 ||
            choose_tenant(c, &spec[i], e) < 0)
            return list ? err_wrap(e, "job %zu", i + 1) : -1;
        if (!str_eq(spec[i].tenant, spec[0].tenant))
            return err_set(e, ERR_INVALID, "job %zu: a batch is for one tenant", i + 1);
    }
    *out = spec;
    *out_n = n;
    return 0;
}

static void put_submitted(struct json_out *w, uint64_t first, size_t n, bool batch,
                          const char *state)
{
    json_begin(w, NULL, '{');
    json_put_u64(w, "id", first);
    json_put_u64(w, "count", n);
    json_put_str(w, "state", str_of(state));
    if (batch) {
        json_begin(w, "ids", '[');
        for (size_t i = 0; i < n; i++)
            json_put_u64(w, NULL, first + i);
        json_end(w, ']');
    }
    json_end(w, '}');
}

static void on_submitted(void *ctx)
{
    struct later *l = ctx;
    AUTO(buf_free) struct buf b = BUF(API_REPLY_MAX);
    struct json_out w = { .b = &b };
    struct call c = { .api = l->api, .rq = l->rq };
    put_submitted(&w, l->job, l->n, l->batch, l->state);
    reply_json(&c, 201, &b);
}

/* The same key again: the same answer, and no second job. */
static bool answer_again(struct call *c, struct str key)
{
    struct err e;
    struct str body;
    struct arena *a = http_arena(c->rq);
    if (!key.n || store_answer(c->api->config.store, str_of(c->who.user), key, a, &body, &e) < 0)
        return false;
    http_add_header(c->rq, "Idempotent-Replay", "true");
    http_reply(c->rq, 201, "application/json", body);
    return true;
}

static int read_submit(struct call *c, struct control_submit *out, bool *out_batch, struct err *e)
{
    AUTO(json_free_p) struct json_doc *d = NULL;
    struct spec *spec = NULL;
    size_t n = 0;
    if (read_body(c, &d, e) < 0 || read_specs(c, json_root(d), &spec, &n, e) < 0 || !spec)
        return -1;
    *out = (struct control_submit){ .user = str_of(c->who.user),
                                    .tenant = spec[0].tenant,
                                    .uid = c->who.uid,
                                    .spec = spec,
                                    .n = n };
    *out_batch = json_find(json_root(d), "jobs") != NULL;
    return 0;
}

int api_job_submit(struct call *c, struct err *e)
{
    struct later *l = arena_new(http_arena(c->rq), struct later);
    const char *key = http_header(c->rq, "Idempotency-Key");
    struct control_submit s;
    *l = (struct later){ .api = c->api, .rq = c->rq };
    if (!control_ready(c->api->config.control, e))
        return -1;
    if (key && strlen(key) > 256) {
        c->field = "Idempotency-Key";
        return err_set(e, ERR_INVALID, "the Idempotency-Key has over 256 bytes");
    }
    if (answer_again(c, str_of(key ? key : "")))
        return 0;
    if (read_submit(c, &s, &l->batch, e) < 0)
        return -1;
    s.key = str_of(key ? key : "");
    l->state = s.spec[0].held ? "held" : "queued";
    return control_submit(c->api->config.control, &s, (struct control_done){ on_submitted, l },
                          &l->job, &l->n, e);
}

int api_job_check(struct call *c, struct err *e)
{
    struct control_submit s;
    bool batch;
    if (!control_ready(c->api->config.control, e) || read_submit(c, &s, &batch, e) < 0 ||
        control_check(c->api->config.control, &s, e) < 0)
        return -1;
    http_reply(c->rq, 200, "application/json", STR("{\"ok\":true}"));
    return 0;
}

/* ---- verbs ---- */

static void on_verb_done(void *ctx)
{
    struct later *l = ctx;
    struct call c = { .api = l->api, .rq = l->rq, .who = l->who, .scope = l->scope };
    struct err e;
    if (reply_job(&c, 200, l->job, &e) < 0)
        http_reply_error(c.rq, &e, NULL);
}

static int verb(struct call *c, enum control_verb v, struct err *e)
{
    static const char *const keys[] = { "reason" };
    AUTO(json_free_p) struct json_doc *d = NULL;
    struct later *l = arena_new(http_arena(c->rq), struct later);
    struct store_job j;
    *l = (struct later){ .api = c->api, .rq = c->rq, .who = c->who, .scope = c->scope };
    if (read_id(c, &l->job, e) < 0 || read_body(c, &d, e) < 0 ||
        json_only(json_root(d), keys, ARRAY_LEN(keys), e) < 0 ||
        find_job(c, l->job, true, &j, e) < 0)
        return -1;
    return control_verb(c->api->config.control, l->job, v, str_of(c->who.user),
                        (struct control_done){ on_verb_done, l }, e);
}

int api_job_cancel(struct call *c, struct err *e)
{
    return verb(c, VERB_CANCEL, e);
}

int api_job_hold(struct call *c, struct err *e)
{
    return verb(c, VERB_HOLD, e);
}

int api_job_release(struct call *c, struct err *e)
{
    return verb(c, VERB_RELEASE, e);
}

int api_job_freeze(struct call *c, struct err *e)
{
    return verb(c, VERB_FREEZE, e);
}

int api_job_thaw(struct call *c, struct err *e)
{
    return verb(c, VERB_THAW, e);
}

int api_job_signal(struct call *c, struct err *e)
{
    static const char *const keys[] = { "signal" };
    AUTO(json_free_p) struct json_doc *d = NULL;
    struct store_job j;
    struct str name;
    uint64_t id;
    if (read_id(c, &id, e) < 0 || read_body(c, &d, e) < 0)
        return -1;
    c->field = "signal";
    if (json_only(json_root(d), keys, ARRAY_LEN(keys), e) < 0 ||
        json_need_str(json_root(d), "signal", 16, &name, e) < 0)
        return -1;
    int signo = spec_signal(name);
    if (signo == 0) {
        err_set(e, ERR_INVALID, "field 'signal': '%.*s' is not a signal", STR_ARG(name));
        return err_hint(e, "e.g. USR1, TERM, INT");
    }
    c->field = NULL;
    if (find_job(c, id, true, &j, e) < 0 ||
        control_signal(c->api->config.control, id, signo, e) < 0)
        return -1;
    return reply_job(c, 200, id, e);
}
