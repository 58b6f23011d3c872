/* Would this job be taken, and when would it start?  A copy of the daemon takes it and makes a pass, so that the answer
 * is what a submit at this moment would lead to, and nobody waits for it but who asked. */
#include "api/foresee.h"

#include "sys/aside.h"

#define FORESEEINGS_MAX 4 /* copies at once; others hear only that it would be taken */
#define FORESEE_S 5
#define FORESEEN_MAX (64u << 10)

struct foreseeing {
    struct api *api;
    struct http_request *rq;
    struct store_scope scope;
    struct event ev;
    struct aside *aside;
    struct foreseeing *next;
};

static void answer_plain(struct http_request *rq)
{
    http_reply(rq, 200, "application/json", STR("{\"ok\":true,\"starts_now\":null}"));
}

static void foreseeing_free(struct foreseeing *f)
{
    struct foreseeing **at = &f->api->foreseeings;
    while (*at && *at != f)
        at = &(*at)->next;
    if (*at)
        *at = f->next;
    aside_free(f->aside);
    free(f);
}

void foreseeings_free(struct api *a)
{
    while (a->foreseeings) {
        answer_plain(a->foreseeings->rq);
        foreseeing_free(a->foreseeings);
    }
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

static void on_foreseen(void *ctx, const struct str *answer)
{
    struct foreseeing *f = ctx;
    if (answer)
        http_reply(f->rq, 200, "application/json", *answer);
    else
        answer_plain(f->rq);
    foreseeing_free(f);
}

static bool may_foresee(const struct api *a)
{
    size_t open = 0;
    for (const struct foreseeing *f = a->foreseeings; f; f = f->next)
        open++;
    return open < FORESEEINGS_MAX && !a->stopping;
}

int api_job_check(struct call *c, struct err *e)
{
    struct api *a = c->api;
    struct control_submit s;
    struct event ev;
    struct err none;
    bool batch;
    if (!control_ready(a->config.control, e) || jobs_read_submit(c, &s, &batch, e) < 0 ||
        control_foresee(a->config.control, &s, http_arena(c->rq), &ev, e) < 0)
        return -1;
    if (!may_foresee(a)) {
        answer_plain(c->rq);
        return 0;
    }
    struct foreseeing *f = xcalloc(1, sizeof *f);
    *f = (struct foreseeing){
        .api = a, .rq = c->rq, .scope = c->scope, .ev = ev, .next = a->foreseeings
    };
    a->foreseeings = f;
    f->aside = aside_begin(&(struct aside_ask){ .loop = a->config.loop,
                                                .work = foresee,
                                                .done = on_foreseen,
                                                .ctx = f,
                                                .limit_s = FORESEE_S,
                                                .answer_max = FORESEEN_MAX },
                           &none);
    if (!f->aside) {
        answer_plain(c->rq);
        foreseeing_free(f);
    }
    return 0;
}
