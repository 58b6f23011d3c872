#include "kube/watch.h"

#include "base/rng.h"
#include "base/url.h"
#include "sys/clock.h"

#define PATH_MAX_BYTES ((size_t)256 << 10)
#define CONTINUE_MAX ((size_t)64 << 10)
#define VERSION_BYTES 256
#define LIST_TIMEOUT_MS 60000
/* Bookmarks come about once a minute; without a byte for longer the connection is not to be trusted. */
#define WATCH_IDLE_MS 150000
#define WATCH_MIN_S 300
#define WATCH_MAX_S 480
#define LIVED_NS INT64_C(1000000000) /* a watch that ended later than this was a good one */

struct kube_watch {
    struct kube_watch_config c;
    char *path, *query;
    struct loop_watch *timer;
    struct rng rng;
    struct kube_call *call;     /* a page of the list */
    struct kube_stream *stream; /* the watch */
    struct buf next_page;       /* the continue token, empty: none */
    struct buf line;            /* an event that is not complete */
    char version[VERSION_BYTES];
    uint64_t backoff_ms, limit;
    int64_t began_ns;
    bool listing, away;
    bool busy, dead; /* inside a callback; and freed there */
};

static void step(void *ctx);

/* ---- waiting, and telling about it ---- */

static void lost(struct kube_watch *w, const struct err *why)
{
    if (w->away || w->dead)
        return;
    w->away = true;
    log_event(w->c.log, LOG_WARN_, "kube.watch.away", "path=%s why=%s", w->path, why->msg);
    if (w->c.on_away)
        w->c.on_away(w->c.ctx, why);
}

static void found(struct kube_watch *w)
{
    if (!w->away)
        return;
    w->away = false;
    log_event(w->c.log, LOG_INFO_, "kube.watch.back", "path=%s", w->path);
    if (w->c.on_back && !w->dead)
        w->c.on_back(w->c.ctx);
}

/* Half to all of the back-off, so that many do not come back at the same moment. */
static void rest(struct kube_watch *w, int64_t at_least_ms)
{
    uint32_t half = (uint32_t)(w->backoff_ms / 2);
    uint64_t wait_ms = half + rng_below(&w->rng, half + 1);
    wait_ms = MAX(wait_ms, (uint64_t)at_least_ms);
    w->backoff_ms = MIN(w->backoff_ms * 2, (uint64_t)KUBE_BACKOFF_MAX_MS);
    if (!w->dead)
        loop_timer_set(w->timer, wait_ms, 0);
}

static void list_anew(struct kube_watch *w)
{
    w->listing = true;
    buf_truncate(&w->next_page, 0);
    w->version[0] = '\0';
}

static void destroy(struct kube_watch *w)
{
    loop_unwatch(w->timer);
    buf_free(&w->next_page);
    buf_free(&w->line);
    free(w->path);
    free(w->query);
    free(w);
}

static void begin(struct kube_watch *w)
{
    w->busy = true;
}

static void end(struct kube_watch *w)
{
    w->busy = false;
    if (w->dead)
        destroy(w);
}

static void keep_version(struct kube_watch *w, struct str version)
{
    size_t n = MIN(version.n, sizeof w->version - 1);
    memcpy(w->version, version.p, n);
    w->version[n] = '\0';
}

/* ---- the list ---- */

static void tell_items(struct kube_watch *w, const struct json *items)
{
    if (!json_is_array(items))
        return;
    for (const struct json *v = json_first(items); v && !w->dead; v = json_next(items, v))
        w->c.on_object(w->c.ctx, KUBE_ADDED, v);
}

static int take_meta(struct kube_watch *w, const struct json *root, struct err *e)
{
    const struct json *meta = json_find(root, "metadata");
    struct str version = { 0 }, next = STR("");
    if (!json_is_object(meta) ||
        json_need_str(meta, "resourceVersion", VERSION_BYTES - 1, &version, e) < 0 ||
        json_get_str(meta, "continue", CONTINUE_MAX, &next, e) < 0)
        return err_set(e, ERR_INVALID, "the API server sent what is not a list for %.120s",
                       w->path);
    keep_version(w, version);
    buf_truncate(&w->next_page, 0);
    buf_add(&w->next_page, next);
    return 0;
}

static int take_page(struct kube_watch *w, struct str body, struct err *e)
{
    AUTO(json_free_p) struct json_doc *doc = json_read(body, e);
    bool first = w->next_page.n == 0;
    if (!doc || take_meta(w, json_root(doc), e) < 0)
        return -1;
    if (first && w->c.on_list)
        w->c.on_list(w->c.ctx);
    tell_items(w, json_find(json_root(doc), "items"));
    return 0;
}

static void list_done(struct kube_watch *w)
{
    w->listing = w->away = false;
    w->backoff_ms = KUBE_BACKOFF_MIN_MS;
    if (w->c.on_synced && !w->dead)
        w->c.on_synced(w->c.ctx);
}

static void on_page(void *ctx, const struct kube_reply *r)
{
    struct kube_watch *w = ctx;
    struct err e = r->err;
    w->call = NULL;
    begin(w);
    if (r->status == 200 && take_page(w, r->body, &e) == 0) {
        if (w->next_page.n == 0)
            list_done(w);
        if (!w->dead)
            step(w);
    } else {
        if (r->status == 410)
            list_anew(w);
        else
            lost(w, &e);
        if (e.code == ERR_TOO_LARGE) /* smaller pages, then */
            w->limit = w->limit > 20 ? w->limit / 2 : 10;
        rest(w, r->retry_after_ms);
    }
    end(w);
}

static void list_step(struct kube_watch *w)
{
    AUTO(buf_free) struct buf path = BUF(PATH_MAX_BYTES);
    buf_printf(&path, "%s?limit=%u", w->path, (unsigned)w->limit);
    if (w->query[0])
        buf_printf(&path, "&%s", w->query);
    if (w->next_page.n) {
        buf_addz(&path, "&continue=");
        url_encode(buf_str(&w->next_page), &path);
    }
    struct kube_request rq = { .path = buf_str(&path), .timeout_ms = LIST_TIMEOUT_MS };
    w->call = kube_send(w->c.client, &rq, on_page, w);
}

/* ---- the watch ---- */

static void stream_over(struct kube_watch *w)
{
    w->stream = kube_close(w->stream);
    buf_truncate(&w->line, 0);
}

/* false: the stream is of no use any more. */
static bool take_event(struct kube_watch *w, struct str line, struct err *e)
{
    AUTO(json_free_p) struct json_doc *doc = NULL;
    struct kube_event ev;
    if (kube_event_read(line, &ev, &doc, e) < 0)
        return false;
    switch (ev.kind) {
    case KUBE_EVENT_OBJECT:
    case KUBE_EVENT_BOOKMARK: break;
    case KUBE_EVENT_GONE: e->code = ERR_NONE; return false;
    case KUBE_EVENT_ERROR: return false;
    }
    keep_version(w, ev.version);
    w->backoff_ms = KUBE_BACKOFF_MIN_MS;
    if (ev.kind == KUBE_EVENT_OBJECT)
        w->c.on_object(w->c.ctx, ev.change, ev.object);
    return true;
}

/* The lines in `chunk`, the first of them after what is kept of it; the last, incomplete one is kept. */
static bool take_lines(struct kube_watch *w, struct str chunk, struct err *e)
{
    while (chunk.n && !w->dead) {
        const char *lf = memchr(chunk.p, '\n', chunk.n);
        struct str part = { chunk.p, lf ? (size_t)(lf - chunk.p) : chunk.n };
        if (!lf || w->line.n) {
            buf_add(&w->line, part);
            if (buf_check(&w->line, e) < 0)
                return false;
        }
        if (!lf)
            return true;
        struct str line = str_trim(w->line.n ? buf_str(&w->line) : part);
        if (line.n && !take_event(w, line, e))
            return false;
        buf_truncate(&w->line, 0);
        chunk = (struct str){ lf + 1, chunk.n - part.n - 1 };
    }
    return true;
}

static bool on_data(void *ctx, struct str chunk)
{
    struct kube_watch *w = ctx;
    struct err e = { 0 };
    begin(w);
    if (chunk.n == 0)
        found(w);
    else if (!take_lines(w, chunk, &e) && !w->dead) {
        stream_over(w);
        list_anew(w);
        if (e.code != ERR_NONE)
            lost(w, &e);
        rest(w, 0);
    }
    end(w);
    return true;
}

static void on_end(void *ctx, const struct kube_reply *r)
{
    struct kube_watch *w = ctx;
    bool was_open = r->status == 200;
    bool lived = clock_mono_ns() - w->began_ns >= LIVED_NS;
    w->stream = NULL;
    buf_truncate(&w->line, 0);
    begin(w);
    if (r->status == 410)
        list_anew(w);
    else if (!was_open || (r->err.code != ERR_NONE && !lived))
        lost(w, &r->err);
    if (was_open && lived)
        step(w);
    else
        rest(w, r->retry_after_ms);
    end(w);
}

static void watch_step(struct kube_watch *w)
{
    AUTO(buf_free) struct buf path = BUF(PATH_MAX_BYTES);
    buf_printf(&path,
               "%s?watch=1&allowWatchBookmarks=true&timeoutSeconds=%u&resourceVersion=", w->path,
               rng_between(&w->rng, WATCH_MIN_S, WATCH_MAX_S));
    url_encode(str_of(w->version), &path);
    if (w->query[0])
        buf_printf(&path, "&%s", w->query);
    w->began_ns = clock_mono_ns();
    w->stream = kube_open_shared(w->c.client, buf_str(&path), WATCH_IDLE_MS, on_data, on_end, w);
}

/* What comes next: a page, or the watch. */
static void step(void *ctx)
{
    struct kube_watch *w = ctx;
    if (w->listing)
        list_step(w);
    else
        watch_step(w);
}

static void on_timer(void *ctx)
{
    begin(ctx);
    step(ctx);
    end(ctx);
}

struct kube_watch *kube_watch_new(struct loop *l, const struct kube_watch_config *config)
{
    struct kube_watch *w = xcalloc(1, sizeof *w);
    w->c = *config;
    w->path = xstrdup(config->path);
    w->query = xstrdup(config->query ? config->query : "");
    w->timer = loop_timer(l, on_timer, w);
    w->rng.s = (uint64_t)clock_mono_ns();
    w->next_page = BUF(CONTINUE_MAX);
    w->line = BUF(KUBE_EVENT_MAX);
    w->backoff_ms = KUBE_BACKOFF_MIN_MS;
    w->limit = KUBE_PAGE;
    list_anew(w);
    loop_timer_set(w->timer, 0, 0);
    return w;
}

struct kube_watch *kube_watch_free(struct kube_watch *w)
{
    if (!w || w->dead)
        return NULL;
    w->dead = true;
    w->call = kube_cancel(w->call);
    w->stream = kube_close(w->stream);
    loop_timer_clear(w->timer);
    if (!w->busy)
        destroy(w);
    return NULL;
}
