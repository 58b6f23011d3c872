/* Would this job be taken, and when would it start?  A copy of the daemon takes it and makes a pass, so that the answer
 * is what a submit at this moment would lead to, and nobody waits for it but who asked.
 *
 * There are few copies, and one person has one at a time.  What they ask meanwhile waits, the latest alone: whoever
 * types on has no use for the answers in between.  Those who wait have their turn in the order they came. */
#include "api/foresee.h"

#include <stdio.h>

#include "sys/aside.h"

#define FORESEEINGS_MAX 4 /* copies at once */
#define WAITING_MAX 8     /* two rounds of copies: a browser is that patient */
#define FORESEE_S 5
#define FORESEEN_MAX (64u << 10)

struct foreseeing {
    struct api *api;
    struct http_request *rq;
    struct store_scope scope;
    char user[sizeof((struct identity){ 0 }.user)];
    struct control_submit s;
    struct event ev;
    struct aside *aside;     /* NULL: it waits */
    struct foreseeing *next; /* who came later */
};

/* It would be taken, and more is not known; ask again. */
static void answer_plain(struct http_request *rq)
{
    http_reply(rq, 200, "application/json",
               STR("{\"ok\":true,\"starts_now\":null,\"again_ms\":1000}"));
}

static void foreseeing_free(struct api *a, struct foreseeing *f)
{
    struct foreseeing **at = &a->foreseeings;
    while (*at && *at != f)
        at = &(*at)->next;
    if (*at)
        *at = f->next;
    aside_free(f->aside);
    free(f);
}

static void give_up(struct api *a, struct foreseeing *f)
{
    answer_plain(f->rq);
    foreseeing_free(a, f);
}

void foreseeings_free(struct api *a)
{
    while (a->foreseeings)
        give_up(a, a->foreseeings);
}

/* In the copy. */
static void foresee(void *ctx, struct buf *out)
{
    const struct foreseeing *f = ctx;
    struct control *control = f->api->config.control;
    struct core *core = control_core(control);
    struct json_out w = { .b = out };
    struct explanation x = { 0 };
    struct err e = { 0 };
    bool now = control_foresee_in_copy(control, &f->ev, &e);
    bool known =
        e.code == 0 && (now || core_explain(core, f->ev.submit.id, f->ev.t_ms, &x, &e) == 0);
    json_begin(&w, NULL, '{');
    json_put_bool(&w, "ok", true);
    if (known)
        json_put_bool(&w, "starts_now", now);
    else
        json_put_null(&w, "starts_now");
    if (known && !now)
        put_explanation(&w, core, &f->scope, f->ev.submit.id.v, &x, f->ev.t_ms);
    json_end(&w, '}');
}

static void begin_next(struct api *a);

static void on_foreseen(void *ctx, const struct str *answer)
{
    struct foreseeing *f = ctx;
    struct api *a = f->api;
    /* One that took too long would the next time too. */
    http_reply(f->rq, 200, "application/json",
               answer ? *answer : STR("{\"ok\":true,\"starts_now\":null}"));
    foreseeing_free(a, f);
    begin_next(a);
}

/* What it asks for is looked at again: jobs came and went while it waited. */
static bool begin(struct foreseeing *f)
{
    struct err none;
    struct api *a = f->api;
    f->s.user = str_of(f->user);
    f->s.sees = &f->scope;
    if (control_foresee(a->config.control, &f->s, http_arena(f->rq), &f->ev, &none) < 0)
        return false;
    f->aside = aside_begin(&(struct aside_ask){ .loop = a->config.loop,
                                                .work = foresee,
                                                .done = on_foreseen,
                                                .ctx = f,
                                                .limit_s = FORESEE_S,
                                                .answer_max = FORESEEN_MAX },
                           &none);
    return f->aside != NULL;
}

static struct foreseeing *find(struct api *a, const char *user, bool runs)
{
    for (struct foreseeing *f = a->foreseeings; f; f = f->next)
        if ((f->aside != NULL) == runs && (!user || strcmp(f->user, user) == 0))
            return f;
    return NULL;
}

static size_t count(const struct api *a, bool runs)
{
    size_t n = 0;
    for (const struct foreseeing *f = a->foreseeings; f; f = f->next)
        n += (f->aside != NULL) == runs;
    return n;
}

/* The first who may: of somebody for whom none runs. */
static void begin_next(struct api *a)
{
    struct foreseeing *next;
    for (struct foreseeing *f = a->foreseeings; f; f = next) {
        next = f->next;
        if (a->stopping || count(a, true) >= FORESEEINGS_MAX)
            return;
        if (!f->aside && !find(a, f->user, true) && !begin(f))
            give_up(a, f);
    }
}

static void add(struct api *a, struct foreseeing *f)
{
    struct foreseeing **at = &a->foreseeings;
    while (*at)
        at = &(*at)->next;
    *at = f;
}

int api_job_check(struct call *c, struct err *e)
{
    struct api *a = c->api;
    struct control_submit s;
    struct event ev;
    bool batch;
    if (!control_ready(a->config.control, e) || jobs_read_submit(c, &s, &batch, e) < 0 ||
        control_foresee(a->config.control, &s, http_arena(c->rq), &ev, e) < 0)
        return -1;
    struct foreseeing *older = find(a, c->who.user, false);
    if (older)
        give_up(a, older);
    if (a->stopping || count(a, false) >= WAITING_MAX) {
        answer_plain(c->rq);
        return 0;
    }
    struct foreseeing *f = xcalloc(1, sizeof *f);
    *f = (struct foreseeing){ .api = a, .rq = c->rq, .scope = c->scope, .s = s };
    snprintf(f->user, sizeof f->user, "%s", c->who.user);
    add(a, f);
    begin_next(a);
    return 0;
}
