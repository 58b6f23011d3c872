/* Jobs: list, show, submit, and what may be done with one. */
#include <stdio.h>

#include "api/audit.h"
#include "api/foresee.h"
#include "base/parse.h"
#include "sys/weak.h"

#define PAGE_DEFAULT 100
#define BATCH_MAX 1000

/* ---- reading ---- */

static uint32_t read_states(const struct call *c)
{
    struct str rest = query_text(c, "state"), word;
    bool all = str_is(rest, "all"), living = rest.n == 0;
    uint32_t bits = 0;
    for (int s = 0; s < JOB_STATE_COUNT && (all || living); s++)
        if (all || !job_state_ended((enum job_state)s))
            bits |= 1u << s;
    while (rest.n && !all) {
        str_cut(rest, ',', &word, &rest);
        for (int s = 0; s < JOB_STATE_COUNT; s++)
            if (str_is(word, job_state_name((enum job_state)s)))
                bits |= 1u << s;
    }
    return bits;
}

int api_job_list(struct call *c, struct err *e)
{
    struct store_filter f = { .states = read_states(c),
                              .user = query_text(c, "user"),
                              .tenant = query_text(c, "tenant"),
                              .name = query_text(c, "name"),
                              .before = query_number(c, "before", 0),
                              .array = query_number(c, "array", 0),
                              .ended_after_ms = (int64_t)query_number(c, "since_ms", 0),
                              .limit = (uint32_t)query_number(c, "limit", PAGE_DEFAULT) };
    struct store_jobs jobs;
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

bool may_read_job(const struct call *c, const struct store_job *j)
{
    return may(c, ACCESS_READ_LOG,
               &(struct subject){ .tenant = j->fixed.tenant, .user = j->fixed.user });
}

int reply_job(struct call *c, int status, uint64_t id, struct err *e)
{
    struct store_job j;
    AUTO(buf_free) struct buf b = BUF(API_REPLY_MAX);
    struct json_out w = { .b = &b };
    if (store_job_get(c->api->config.store, &c->scope, id, http_arena(c->rq), &j, e) < 0)
        return -1;
    put_job(&w, NULL, c->api, &j, may_read_job(c, &j) || weak_here("spec_owner"));
    reply_json(c, status, &b);
    return 0;
}

int api_job_get(struct call *c, struct err *e)
{
    return reply_job(c, 200, c->job.fixed.id, e);
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
    AUTO(buf_free) struct buf all = BUF(160);
    for (size_t i = 0; i < f->profiles; i++)
        buf_printf(&all, "%s%.*s", i ? ", " : "", STR_ARG(f->profile[i].name));
    err_set(e, ERR_INVALID, "field 'profile': there is no profile '%.*s'", STR_ARG(s->profile));
    return f->profiles ? err_hint(e, "there are: %s", buf_str(&all).p)
                       : err_hint(e, "this site has none: leave it out");
}

/* "'blue' or 'red'": the first of those that may be meant. */
static void put_places(struct buf *out, const struct place *at, size_t n)
{
    for (size_t i = 0; i < n; i++)
        buf_printf(out, "%s'%.*s'", i == 0 ? "" : i + 1 < n ? ", " : " or ", STR_ARG(at[i].tenant));
}

/* Nobody else's act may turn somebody's next jobs to another tenant, whose lead reads and ends them: so what
 * they chose themselves counts, or the only tenant that there is; never the first of several. */
static int choose_tenant(struct call *c, struct str *out, struct err *e)
{
    size_t n, may_be = 0;
    struct people *people = auth_people(c->api->config.auth);
    const struct person *x = people_find(people, str_of(c->who.user));
    const struct place *at = people_places(people, str_of(c->who.user), http_arena(c->rq), &n);
    struct place *choice = arena_array(http_arena(c->rq), struct place, n + 1);
    struct str own = str_of(x ? x->tenant : "");
    for (size_t i = 0; i < n; i++)
        if (!at[i].from_above && may(c, ACCESS_SUBMIT, &(struct subject){ .tenant = at[i].tenant }))
            choice[may_be++] = at[i];
    for (size_t i = 0; i < may_be; i++)
        if (str_eq(choice[i].tenant, own)) {
            *out = choice[i].tenant;
            return 0;
        }
    if (may_be == 0) {
        err_set(e, ERR_DENIED, "'%s' is in no tenant that it may submit for", c->who.user);
        return err_hint(e, "ask an administrator, or the lead of a tenant: nightshift tenants");
    }
    bool lost = own.n && people_role_in(people, str_of(c->who.user), own) < ROLE_MEMBER;
    if (may_be == 1 && !lost) {
        *out = choice[0].tenant;
        return 0;
    }
    AUTO(buf_free) struct buf names = BUF(1024);
    if (lost)
        buf_printf(&names, "you are not in '%.*s' any more: ", STR_ARG(own));
    buf_addz(&names, "say for which it is, ");
    put_places(&names, choice, MIN(may_be, (size_t)3));
    err_set(e, ERR_INVALID, "field 'tenant': %.*s%s", STR_ARG(buf_str(&names)),
            may_be > 3 ? " or another" : "");
    return err_hint(e, "--tenant NAME, or once for all: nightshift tenants default NAME");
}

static int check_tenant(struct call *c, struct spec *s, struct err *e)
{
    c->field = "tenant";
    if (s->tenant.n == 0 && choose_tenant(c, &s->tenant, e) < 0)
        return -1;
    if (!may(c, ACCESS_SUBMIT, &(struct subject){ .tenant = s->tenant }) &&
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
    static const char *const keys[] = { "jobs" };
    const struct json *list = json_find(o, "jobs");
    size_t n = list ? json_len(list) : 1, i = 0;
    if (list && json_only(o, keys, ARRAY_LEN(keys), e) < 0) {
        struct str odd = json_odd_key(o, keys, ARRAY_LEN(keys));
        c->field = arena_printf(a, "%.*s", (int)MIN(odd.n, FIELD_MAX), odd.p);
        return err_hint(e, "beside 'jobs' nothing may stand: put it into each job");
    }
    if (list && (!json_is_array(list) || n == 0 || n > BATCH_MAX)) {
        c->field = "jobs";
        err_set(e, ERR_INVALID, "field 'jobs' must be a list of 1 to %d jobs", BATCH_MAX);
        return err_hint(e, "e.g. {\"jobs\": [{\"command\": [\"true\"]}]}");
    }
    struct spec *spec = arena_array(a, struct spec, n);
    for (const struct json *v = list ? json_first(list) : o; v;
         v = list ? json_next(list, v) : NULL, i++) {
        if (spec_read(v, a, &spec[i], &c->field, e) < 0 || use_profile(c, &spec[i], e) < 0 ||
            check_tenant(c, &spec[i], e) < 0) {
            if (list)
                c->field = arena_printf(a, "jobs[%zu]%s%s", i, c->field ? "." : "",
                                        c->field ? c->field : "");
            return list ? err_wrap(e, "job %zu", i + 1) : -1;
        }
        if (!str_eq(spec[i].tenant, spec[0].tenant)) {
            c->field = arena_printf(a, "jobs[%zu].tenant", i);
            err_set(e, ERR_INVALID, "job %zu: field 'tenant': a batch is for one tenant", i + 1);
            return err_hint(e, "submit the jobs of each tenant on their own");
        }
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

static void add_location(struct call *c, uint64_t first)
{
    http_add_header(c->rq, "Location",
                    arena_printf(http_arena(c->rq), "/v1/jobs/%llu", (unsigned long long)first));
}

static void on_submitted(void *ctx)
{
    struct later *l = ctx;
    AUTO(buf_free) struct buf b = BUF(API_REPLY_MAX);
    struct json_out w = { .b = &b };
    struct call c = { .api = l->api, .rq = l->rq };
    put_submitted(&w, l->job, l->n, l->batch, l->state);
    add_location(&c, l->job);
    reply_json(&c, 201, &b);
}

/* The same key again: the same answer, and no second job.  1: answered; 0: it is new. */
static int answer_again(struct call *c, struct str key, struct err *e)
{
    struct err none;
    struct str text, first, body;
    char mine[24];
    struct arena *a = http_arena(c->rq);
    if (!key.n || store_answer(c->api->config.store, str_of(c->who.user), key, a, &text, &none) < 0)
        return 0;
    /* What was asked comes first; an older version wrote the answer alone. */
    if (!str_cut(text, ' ', &first, &body) || first.p[0] == '{')
        body = text;
    snprintf(mine, sizeof mine, "%016llx", (unsigned long long)str_hash(http_body(c->rq)));
    if (body.p != text.p && !str_is(first, mine))
        return control_key_reused(key, e);
    http_add_header(c->rq, "Idempotent-Replay", "true");
    http_reply(c->rq, 201, "application/json", body);
    return 1;
}

int jobs_read_submit(struct call *c, struct control_submit *out, bool *out_batch, struct err *e)
{
    AUTO(json_free_p) struct json_doc *d = NULL;
    struct spec *spec = NULL;
    size_t n = 0;
    if (read_body(c, NULL, 0, &d, e) < 0 || read_specs(c, json_root(d), &spec, &n, e) < 0 || !spec)
        return -1;
    *out = (struct control_submit){ .user = str_of(c->who.user),
                                    .tenant = spec[0].tenant,
                                    .uid = c->who.uid,
                                    .sees = &c->scope,
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
    int again = answer_again(c, str_of(key ? key : ""), e);
    if (again != 0)
        return again < 0 ? -1 : 0;
    if (jobs_read_submit(c, &s, &l->batch, e) < 0)
        return -1;
    s.key = str_of(key ? key : "");
    s.request = str_hash(http_body(c->rq));
    s.batch = l->batch;
    l->state = s.spec[0].held ? "held" : "queued";
    return control_submit(c->api->config.control, &s, (struct control_done){ on_submitted, l },
                          &l->job, &l->n, e);
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

static const enum audit_verb audit_verbs[] = {
    [VERB_CANCEL] = AUDIT_JOB_CANCEL,   [VERB_HOLD] = AUDIT_JOB_HOLD,
    [VERB_RELEASE] = AUDIT_JOB_RELEASE, [VERB_FREEZE] = AUDIT_JOB_FREEZE,
    [VERB_THAW] = AUDIT_JOB_THAW,
};
_Static_assert(ARRAY_LEN(audit_verbs) == CONTROL_VERB_COUNT, "a verb is not in the audit");

int act_on_job(struct call *c, enum control_verb v, struct str reason, struct control_done done,
               struct err *e)
{
    uint64_t job = c->job.fixed.id;
    char by[sizeof c->who.user + REASON_MAX + 3];
    snprintf(by, sizeof by, "%s%s%.*s", c->who.user, reason.n ? ": " : "", STR_ARG(reason));
    struct audit_change ch = { .what = audit_verbs[v],
                               .subject = audit_job_subject(c, job),
                               .tenant = c->job.fixed.tenant,
                               .before = audit_job_state(c, job),
                               .reason = reason };
    if (control_verb(c->api->config.control, job, v, str_of(by), done, e) < 0)
        return -1;
    ch.after = audit_job_state(c, job);
    if (audit_is_foreign(c, c->job.fixed.user))
        api_audit(c, &ch);
    return 0;
}

static int verb(struct call *c, enum control_verb v, struct err *e)
{
    struct later *l = arena_new(http_arena(c->rq), struct later);
    struct str reason;
    *l = (struct later){ .api = c->api, .rq = c->rq, .who = c->who, .scope = c->scope };
    l->job = c->job.fixed.id;
    if (read_verb(c, &reason, e) < 0)
        return -1;
    return act_on_job(c, v, reason, (struct control_done){ on_verb_done, l }, e);
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
    struct str name;
    uint64_t id = c->job.fixed.id;
    if (read_body(c, keys, ARRAY_LEN(keys), &d, e) < 0)
        return -1;
    c->field = "signal";
    if (json_need_str(json_root(d), "signal", 16, &name, e) < 0)
        return -1;
    int signo = spec_signal(name);
    if (signo == 0) {
        err_set(e, ERR_INVALID, "field 'signal': '%.*s' is not a signal", STR_ARG(name));
        return err_hint(e, "e.g. USR1, TERM, INT");
    }
    c->field = NULL;
    if (control_signal(c->api->config.control, id, signo, e) < 0)
        return -1;
    if (audit_is_foreign(c, c->job.fixed.user))
        api_audit(c, &(struct audit_change){
                         .what = AUDIT_JOB_SIGNAL,
                         .subject = audit_job_subject(c, id),
                         .tenant = c->job.fixed.tenant,
                         .after = str_of(arena_printf(http_arena(c->rq), "{\"signal\":\"%.*s\"}",
                                                      STR_ARG(name))) });
    return reply_job(c, 200, id, e);
}
