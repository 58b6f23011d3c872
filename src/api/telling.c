/* What is told as lines of JSON, a page at a time: the journal, the audit. */
#include "api/telling.h"
#include "api/state.h"

#define CHUNK (256u << 10) /* handed to the connection at a time, about */
#define TELLINGS_MAX 8

struct telling {
    struct api *api;
    struct http_request *rq;
    const struct telling_kind *kind;
    union telling_place at;
    struct loop_watch *again; /* comes after what others have sent meanwhile, as no timer would */
    struct telling *next;
};

static void telling_drop(struct telling *t)
{
    loop_unwatch(t->again);
    free(t);
}

static void telling_free(struct telling *t)
{
    struct telling **at = &t->api->tellings;
    while (*at != t)
        at = &(*at)->next;
    *at = t->next;
    telling_drop(t);
}

static void on_close(void *ctx)
{
    telling_free(ctx);
}

/* What cannot be told whole ends in a line that no reader takes for one of the others. */
static void put_failure(struct telling *t, const struct err *e, struct buf *out)
{
    struct json_out w = { .b = out };
    log_event(t->api->config.log, LOG_ERROR_, t->kind->log_name, "why=%s", e->msg);
    json_begin(&w, NULL, '{');
    json_put_str(&w, "error", str_of(e->msg));
    json_end(&w, '}');
    buf_addc(out, '\n');
}

static void send_on(void *ctx)
{
    struct telling *t = ctx;
    AUTO(buf_free) struct buf out = BUF(API_REPLY_MAX);
    struct err e;
    bool more = false;
    if (http_stream_queued(t->rq) > CHUNK)
        return; /* on_room */
    if (t->kind->page(t->api, &t->at, &out, &more, &e) < 0) {
        put_failure(t, &e, &out);
        more = false;
    }
    if (out.n && !http_stream_write(t->rq, buf_str(&out)))
        return;
    if (more) {
        loop_wakeup_send(t->again);
        return;
    }
    struct http_request *rq = t->rq;
    telling_free(t);
    http_stream_end(rq);
}

static void on_room(void *ctx)
{
    loop_wakeup_send(((struct telling *)ctx)->again);
}

void tellings_free(struct api *a)
{
    for (struct telling *t = a->tellings, *next; t; t = next) {
        struct http_request *rq = t->rq;
        next = t->next;
        a->tellings = next;
        telling_drop(t);
        http_stream_end(rq);
    }
}

int telling_begin(struct call *c, const struct telling_kind *kind, const union telling_place *at,
                  struct err *e)
{
    size_t open = 0;
    for (const struct telling *t = c->api->tellings; t; t = t->next)
        open++;
    if (open >= TELLINGS_MAX)
        return err_set(e, ERR_UNAVAILABLE, "%zu clients read the journal or the audit already",
                       open);
    struct telling *t = xcalloc(1, sizeof *t);
    *t = (struct telling){
        .api = c->api, .rq = c->rq, .kind = kind, .at = *at, .next = c->api->tellings
    };
    t->again = loop_wakeup(c->api->config.loop, send_on, t);
    c->api->tellings = t;
    http_stream_begin(c->rq, 200, "application/x-ndjson", on_close, t);
    http_stream_on_room(c->rq, on_room);
    loop_wakeup_send(t->again);
    return 0;
}
