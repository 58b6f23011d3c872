/* Why a job waits: now, from the core; or at a time that is past, from a core that is told the journal
 * up to then.  That goes on beside everything else, a page of lines at a time, and whoever asks hears
 * of the jobs it may see. */
#include <stdio.h>

#include "api/foresee.h"
#include "api/holds.h"
#include "api/state.h"
#include "base/date.h"
#include "journal/journal.h"

#define PAGE 200    /* lines told in one go: a few milliseconds */
#define PASTS_MAX 2 /* a core each */
#define HOLDERS_MAX 20

/* ---- the answer ---- */

static void put_line(struct json_out *w, const char *code, const char *text)
{
    json_begin(w, NULL, '{');
    json_put_str(w, "code", str_of(code));
    json_put_str(w, "text", str_of(text));
    json_end(w, '}');
}

/* With what was said of it when it came, once that has passed. */
static void put_starts(struct json_out *w, const struct core *core, uint64_t id,
                       const struct eta *eta, int64_t now_ms)
{
    struct job_view v;
    json_begin(w, "starts", '{');
    json_put_i64(w, "p50_ms", eta->p50_ms);
    json_put_i64(w, "p90_ms", eta->p90_ms);
    json_put_i64(w, "p50_in_ms", eta->p50_ms - now_ms);
    json_put_i64(w, "p90_in_ms", eta->p90_ms - now_ms);
    if (core_job(core, (job_id){ id }, &v) && v.is_stated && v.eta.p50_ms < now_ms)
        json_put_i64(w, "foreseen_ms", v.eta.p50_ms);
    json_end(w, '}');
}

static void put_before(struct json_out *w, const struct before *t)
{
    json_begin(w, "before", '{');
    json_put_u64(w, "own", t->own);
    json_put_u64(w, "users", t->users);
    json_end(w, '}');
}

/* A reservation is named to those who see whose it is. */
static const char *reason_words(struct core *core, const struct store_scope *scope,
                                const struct explanation *x, size_t i, char out[static 640])
{
    struct reservation_view r = { 0 };
    struct share_view tenant = { 0 };
    uint32_t number = x->line[i].reservation;
    bool seen = number && core_reservation(core, number - 1, &r) && r.name &&
                core_share(core, r.tenant, r.from_ms, &tenant) &&
                store_scope_sees(scope, str_of(tenant.name));
    snprintf(out, 640, "%s%s%s%s", x->line[i].text, number ? " (reserved" : "", seen ? ": '" : "",
             seen ? r.name : "");
    if (number)
        snprintf(out + strlen(out), 640 - strlen(out), "%s)", seen ? "'" : "");
    return out;
}

void put_explanation(struct json_out *w, struct core *core, const struct store_scope *scope,
                     uint64_t id, const struct explanation *x, int64_t now_ms)
{
    char text[640];
    struct advice ad[ADVICE_MAX];
    uint32_t n = x->n ? core_advise(core, (job_id){ id }, ad) : 0;
    json_put_i64(w, "waited_ms", x->waited_ms);
    json_begin(w, "reasons", '[');
    for (size_t i = 0; i < x->n; i++)
        put_line(w, reason_slug(x->line[i].why), reason_words(core, scope, x, i, text));
    json_end(w, ']');
    if (x->before.own || x->before.users)
        put_before(w, &x->before);
    if (x->has_eta)
        put_starts(w, core, id, &x->eta, now_ms);
    json_begin(w, "helps", '[');
    for (uint32_t i = 0; i < n; i++)
        put_line(w, advice_slug(ad[i].kind), ad[i].text);
    json_end(w, ']');
}

/* ---- at a time that is past ---- */

struct past {
    struct api *api;
    struct http_request *rq;
    struct store_scope scope;
    char user[sizeof((struct identity *)0)->user];
    struct store_job j;
    int64_t at_ms;
    struct store_journal_place place;
    struct core *core;
    struct arena arena;       /* of one line */
    struct loop_watch *again; /* a wakeup: a timer that is due at once would let nobody else in */
    uint32_t segments;
    bool done; /* what comes is later */
    struct past *next;
};

static void past_free(struct past *p)
{
    struct past **at = &p->api->pasts;
    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    loop_unwatch(p->again);
    core_free(p->core);
    arena_free(&p->arena);
    free(p);
}

void pasts_free(struct api *a)
{
    struct err e;
    err_set(&e, ERR_UNAVAILABLE, "the server is being stopped");
    while (a->pasts) {
        http_reply_error(a->pasts->rq, &e, NULL);
        past_free(a->pasts);
    }
}

static int tell_line(void *ctx, int64_t t_ms, struct str line, struct err *e)
{
    struct past *p = ctx;
    struct event ev;
    p->segments += line.n == 0;
    p->done = p->done || t_ms > p->at_ms || p->segments > 1;
    if (p->done || line.n == 0)
        return 0;
    arena_reset(&p->arena);
    return journal_read(line, &p->arena, &ev, e) < 0 ? -1 : core_apply(p->core, &ev, e);
}

/* Who had what it waited for: those that the caller may see by name, the others as a number. */
static void put_holders(struct past *p, struct json_out *w)
{
    job_id id[HOLDERS_MAX];
    uint32_t n = core_holders(p->core, (job_id){ p->j.fixed.id }, id, HOLDERS_MAX), shown = 0;
    json_begin(w, "instead", '{');
    json_begin(w, "jobs", '[');
    for (uint32_t i = 0; i < MIN(n, (uint32_t)HOLDERS_MAX); i++) {
        struct store_job j;
        struct err none;
        if (store_job_get(p->api->config.store, &p->scope, id[i].v, http_arena(p->rq), &j, &none) <
            0)
            continue;
        json_begin(w, NULL, '{');
        json_put_u64(w, "id", j.fixed.id);
        json_put_str(w, "name", j.fixed.name);
        json_put_str(w, "user", j.fixed.user);
        json_put_str(w, "tenant", j.fixed.tenant);
        json_put_u64(w, "gpu_milli", j.fixed.gpu_milli);
        json_end(w, '}');
        shown++;
    }
    json_end(w, ']');
    json_put_u64(w, "others", n - shown);
    json_end(w, '}');
}

/* Since when it held what it held then, as its runs have it. */
static int put_place(struct past *p, const struct job_view *v, struct json_out *w, struct err *e)
{
    struct store_runs runs;
    struct node_view n;
    if (store_job_runs(p->api->config.store, &p->scope, p->j.fixed.id, http_arena(p->rq), &runs,
                       e) < 0)
        return -1;
    for (size_t i = runs.n; i > 0; i--)
        if (runs.v[i - 1].started_ms <= p->at_ms) {
            json_put_i64(w, "since_ms", runs.v[i - 1].started_ms);
            break;
        }
    json_begin(w, "nodes", '[');
    for (uint32_t i = 0; i < v->n; i++)
        if ((i == 0 || v->slots[i].node != v->slots[i - 1].node) &&
            core_node(p->core, (node_id){ v->slots[i].node }, &n))
            json_put_str(w, NULL, str_of(n.name));
    json_end(w, ']');
    return 0;
}

static int put_past(struct past *p, struct json_out *w, struct err *e)
{
    struct explanation x = { 0 };
    struct job_view v = { 0 };
    uint64_t id = p->j.fixed.id;
    bool lives = core_job(p->core, (job_id){ id }, &v);
    if (!lives && !(p->j.now.ended_ms && p->j.now.ended_ms <= p->at_ms))
        return err_set(e, ERR_INTERNAL, "the journal does not know job %llu then",
                       (unsigned long long)id);
    enum job_state state = lives ? v.state : p->j.now.state;
    bool waits = lives && !job_state_holds(state);
    if (waits && core_explain(p->core, (job_id){ id }, p->at_ms, &x, e) < 0)
        return -1;
    json_begin(w, NULL, '{');
    json_put_u64(w, "job", id);
    json_put_str(w, "state", str_of(job_state_name(state)));
    json_put_i64(w, "at_ms", p->at_ms);
    put_explanation(w, p->core, &p->scope, id, &x, p->at_ms);
    if (waits)
        put_holders(p, w);
    else if (lives && put_place(p, &v, w, e) < 0)
        return -1;
    if (!lives) {
        json_put_i64(w, "since_ms", p->j.now.ended_ms);
        if (p->j.now.message.n)
            json_put_str(w, "message", p->j.now.message);
    }
    json_end(w, '}');
    return 0;
}

static void past_answer(struct past *p, struct err *e)
{
    AUTO(buf_free) struct buf b = BUF(256u << 10);
    struct json_out w = { .b = &b };
    struct call c = { .api = p->api, .rq = p->rq };
    if (e->code == 0 && put_past(p, &w, e) == 0)
        reply_json(&c, 200, &b);
    else
        http_reply_error(p->rq, e, NULL);
    past_free(p);
}

static void tell_on(void *ctx)
{
    struct past *p = ctx;
    struct err e = { 0 };
    bool ended = store_journal_page(p->api->config.store, &p->place, PAGE, tell_line, p, &e) < 0 ||
                 p->done || p->place.next > p->place.last;
    if (ended)
        past_answer(p, &e);
    else
        loop_wakeup_send(p->again);
}

/* Can this time be looked at?  Nothing is wrong with the request, but with the time there is. */
static int check_past(struct call *c, const struct store_job *j, int64_t at_ms,
                      const struct store_journal_place *place, struct err *e)
{
    char text[32], begin[32];
    const char *at = date_format(at_ms, text);
    c->field = "at_ms";
    if (at_ms > control_now_ms(c->api->config.control)) {
        err_set(e, ERR_CONFLICT, "at_ms: %s is in the future", at);
        return err_hint(e, "when it will probably start is in the answer without a time");
    }
    if (at_ms < j->fixed.submitted_ms)
        return err_set(e, ERR_CONFLICT, "job %llu was not there at %s: it was submitted at %s",
                       (unsigned long long)j->fixed.id, at,
                       date_format(j->fixed.submitted_ms, begin));
    if (at_ms >= place->begin_ms)
        return 0;
    err_set(e, ERR_CONFLICT, "the journal begins at %s: nothing is known of %s any more",
            date_format(place->begin_ms, begin), at);
    return err_hint(e, "ask for a later time");
}

/* One each, or somebody who asks again and again has all of them. */
static int check_pasts(const struct call *c, struct err *e)
{
    size_t open = 0, own = 0;
    for (const struct past *p = c->api->pasts; p; p = p->next) {
        open++;
        own += str_is(str_of(c->who.user), p->user);
    }
    if (open < PASTS_MAX && own == 0 && !c->api->stopping)
        return 0;
    if (own)
        err_set(e, ERR_UNAVAILABLE, "you look into the past already");
    else
        err_set(e, ERR_UNAVAILABLE, "%zu others look into the past already", open);
    return err_hint(e, "ask again in some seconds");
}

static int why_then(struct call *c, const struct store_job *j, int64_t at_ms, struct err *e)
{
    struct store_journal_place place = { 0 };
    if (store_journal_from(c->api->config.store, at_ms, &place, e) < 0 ||
        check_past(c, j, at_ms, &place, e) < 0)
        return -1;
    c->field = NULL;
    if (check_pasts(c, e) < 0)
        return -1;
    struct past *p = xcalloc(1, sizeof *p);
    *p = (struct past){ .api = c->api,
                        .rq = c->rq,
                        .scope = c->scope,
                        .j = *j,
                        .at_ms = at_ms,
                        .place = place,
                        .core = core_new(),
                        .next = c->api->pasts };
    memcpy(p->user, c->who.user, sizeof p->user);
    p->again = loop_wakeup(c->api->config.loop, tell_on, p);
    c->api->pasts = p;
    loop_wakeup_send(p->again);
    return 0;
}

/* ---- now ---- */

int api_job_why(struct call *c, struct err *e)
{
    const struct store_job j = c->job;
    struct explanation x = { 0 };
    struct control *ctl = c->api->config.control;
    uint64_t id = j.fixed.id, at_ms = query_number(c, "at_ms", 0);
    if (at_ms)
        return why_then(c, &j, (int64_t)at_ms, e);
    bool waits = !job_state_ended(j.now.state) && !job_state_holds(j.now.state);
    int64_t now_ms = control_now_ms(ctl);
    if (waits && core_explain(control_core(ctl), (job_id){ id }, now_ms, &x, e) < 0)
        return -1;
    AUTO(buf_free) struct buf b = BUF(64 << 10);
    struct json_out w = { .b = &b };
    json_begin(&w, NULL, '{');
    json_put_u64(&w, "job", id);
    json_put_str(&w, "state", str_of(job_state_name(j.now.state)));
    put_explanation(&w, control_core(ctl), &c->scope, id, &x, now_ms);
    put_held_list(&w, c->api);
    if (j.now.message.n)
        json_put_str(&w, "message", j.now.message);
    json_end(&w, '}');
    reply_json(c, 200, &b);
    return 0;
}
