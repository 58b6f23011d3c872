/* What happens, as it happens: server-sent events from the store's list of them. */
#include <stdio.h>

#include "api/state.h"
#include "base/parse.h"

#define PAGE 500
#define FEEDS_MAX 4096

struct feed {
    struct api *api;
    struct http_request *rq;
    char user[sizeof((struct identity *)0)->user];
    struct store_scope scope;
    struct str *tenant; /* the scope's, owned */
    uint64_t sent;
    struct feed *next;
};

static void feed_clear(struct feed *f)
{
    for (size_t i = 0; i < f->scope.n; i++)
        free((char *)(uintptr_t)f->tenant[i].p);
    free(f->tenant);
    free(f);
}

static void feed_free(struct feed *f)
{
    struct feed **at = &f->api->feeds;
    while (*at != f)
        at = &(*at)->next;
    *at = f->next;
    feed_clear(f);
}

static void on_close(void *ctx)
{
    feed_free(ctx);
}

/* false: the reader was too slow and the feed is gone. */
static bool send_page(struct feed *f, size_t *out_n)
{
    AUTO(arena_free) struct arena a = { 0 };
    AUTO(buf_free) struct buf b = BUF(API_REPLY_MAX);
    struct store_events events;
    struct store_after after = { f->sent, PAGE };
    struct err e;
    *out_n = 0;
    if (store_events_after(f->api->config.store, &f->scope, &after, &a, &events, &e) < 0) {
        log_event(f->api->config.log, LOG_ERROR_, "events.read", "why=%s", e.msg);
        return true;
    }
    const struct store_event *ev = events.v;
    *out_n = events.n;
    for (size_t i = 0; i < events.n; i++) {
        buf_printf(&b, "id: %llu\nevent: %.*s\ndata: {\"number\":%llu,\"t_ms\":%lld,",
                   (unsigned long long)ev[i].number, STR_ARG(ev[i].kind),
                   (unsigned long long)ev[i].number, (long long)ev[i].t_ms);
        buf_add(&b, (struct str){ ev[i].body.p + 1, ev[i].body.n - 1 }); /* without its brace */
        buf_addz(&b, "\n\n");
        f->sent = ev[i].number;
    }
    return b.n == 0 || http_stream_write(f->rq, buf_str(&b));
}

static void feed_on(struct feed *f)
{
    size_t n = PAGE;
    while (n == PAGE && send_page(f, &n))
        ;
}

void feeds_wake(struct api *a)
{
    for (struct feed *f = a->feeds, *next; f; f = next) {
        next = f->next; /* a slow one may go while it is written to */
        feed_on(f);
    }
}

void feeds_free(struct api *a)
{
    for (struct feed *f = TAKE(a->feeds), *next; f; f = next) {
        struct http_request *rq = f->rq;
        next = f->next;
        feed_clear(f);
        http_stream_end(rq);
    }
}

void feeds_end_of(struct api *a, struct str user)
{
    for (struct feed *f = a->feeds, *next; f; f = next) {
        struct http_request *rq = f->rq;
        next = f->next;
        if (!str_is(user, f->user))
            continue;
        feed_free(f);
        http_stream_end(rq);
    }
}

static struct str own(struct str s)
{
    char *p = xcalloc(s.n + 1, 1);
    memcpy(p, s.p, s.n);
    return (struct str){ p, s.n };
}

int api_events(struct call *c, struct err *e)
{
    const char *last = http_header(c->rq, "Last-Event-ID");
    uint64_t after = query_number(c, "after", store_last_event(c->api->config.store));
    size_t open = 0;
    if (last && parse_u64(str_of(last), NUMBER_MAX, &after, e) < 0)
        return err_wrap(e, "header 'Last-Event-ID'");
    for (struct feed *f = c->api->feeds; f; f = f->next)
        open++;
    if (open >= FEEDS_MAX)
        return err_set(e, ERR_UNAVAILABLE, "%zu clients follow the events already", open);
    struct feed *f = xcalloc(1, sizeof *f);
    *f = (struct feed){ .api = c->api, .rq = c->rq, .sent = after, .next = c->api->feeds };
    memcpy(f->user, c->who.user, sizeof f->user);
    f->scope.everything = c->scope.everything;
    f->scope.n = c->scope.n;
    f->tenant = xcalloc(c->scope.n + 1, sizeof *f->tenant);
    for (size_t i = 0; i < c->scope.n; i++)
        f->tenant[i] = own(c->scope.tenant[i]);
    f->scope.tenant = f->tenant;
    c->api->feeds = f;
    http_stream_begin(c->rq, 200, "text/event-stream", on_close, f);
    if (http_stream_write(c->rq, STR(": here is what happens\n\n")))
        feed_on(f);
    return 0;
}
