/* Streams of client.h.  Bytes are kept while libcurl is at work and told when it has come to rest, so whoever
 * takes them may close any stream. */
#include "base/json.h"
#include "kube/state.h"

#define HELD_MAX ((size_t)256 << 10) /* bytes, then the connection waits */
#define HELD_HARD                                                                                  \
    ((size_t)64 << 20) /* for a stream that cannot pause: one round of libcurl is far below */
#define REFUSAL_MAX ((size_t)256 << 10)

struct kube_stream {
    struct kube_transfer t; /* first: libcurl gives it back */
    TAILQ_ENTRY(kube_stream) link;
    struct kube_client *client;
    kube_data_fn *on_data;
    kube_reply_fn *on_end;
    void *ctx;
    char *path;
    uint64_t idle_ms, version;
    struct curl_slist *headers;
    struct buf held;
    CURLcode rc;
    bool shared, begun, agreed, agreed_told, retried;
    bool ready;   /* which list it is in */
    bool paused;  /* by its reader */
    bool stopped; /* by us: libcurl has been told to wait */
    bool ended;
    bool telling, closed; /* inside a callback; and closed there */
};

static void unlist(struct kube_stream *s)
{
    TAILQ_REMOVE(s->ready ? &s->client->ready : &s->client->streams, s, link);
    s->client->n_ready -= s->ready;
    s->ready = false;
}

/* Somebody has to look at it. */
static void mark(struct kube_stream *s)
{
    if (s->ready)
        return;
    unlist(s);
    TAILQ_INSERT_TAIL(&s->client->ready, s, link);
    s->client->n_ready++;
    s->ready = true;
}

static void stream_free(struct kube_stream *s)
{
    kube_transfer_clear(&s->t);
    curl_slist_free_all(s->headers);
    buf_free(&s->held);
    free(s->path);
    free(s);
}

static bool is_success(const struct kube_stream *s)
{
    long status = 0;
    curl_easy_getinfo(s->t.easy, CURLINFO_RESPONSE_CODE, &status);
    return status >= 200 && status <= 299;
}

/* ---- inside libcurl ---- */

static size_t take_header(char *p, size_t size, size_t n, void *ctx)
{
    struct kube_stream *s = ctx;
    if (size * n == 2 && p[0] == '\r') /* the end of the headers */
        s->agreed = is_success(s);
    if (s->agreed && !s->agreed_told)
        mark(s);
    return size * n;
}

static size_t take_data(char *p, size_t size, size_t n, void *ctx)
{
    struct kube_stream *s = ctx;
    if (!s->agreed) { /* why it refuses; the rest of a long sermon is dropped */
        size_t room = REFUSAL_MAX - MIN(s->held.n, REFUSAL_MAX);
        buf_add(&s->held, (struct str){ p, MIN(size * n, room) });
        return size * n;
    }
    if (!s->shared && s->held.n >= HELD_MAX) {
        s->stopped = true;
        return CURL_WRITEFUNC_PAUSE;
    }
    buf_add(&s->held, (struct str){ p, size * n });
    mark(s);
    return s->held.full ? 0 : size * n;
}

static void on_done(struct kube_transfer *t, CURLcode rc)
{
    struct kube_stream *s = (struct kube_stream *)t;
    if (rc == CURLE_OPERATION_TIMEDOUT && s->shared)
        kube_client_retire(s->client, t->multi);
    s->rc = rc;
    s->ended = true;
    kube_multi_remove(t);
    mark(s);
}

/* ---- outside ---- */

static int stream_begin(struct kube_stream *s, const struct kube_identity *who, struct err *e)
{
    struct kube_client *c = s->client;
    long idle_s = (long)MIN((s->idle_ms + 999) / 1000, (uint64_t)86400);
    s->t.done = on_done;
    s->held.limit = HELD_HARD;
    s->version = who->version;
    s->headers = kube_headers(who, NULL);
    if (kube_transfer_init(&s->t, c->config, who, e) < 0 ||
        kube_transfer_url(&s->t, c->config, str_of(s->path), e) < 0)
        return -1;
    curl_easy_setopt(s->t.easy, CURLOPT_HTTPHEADER, s->headers);
    curl_easy_setopt(s->t.easy, CURLOPT_WRITEFUNCTION, take_data);
    curl_easy_setopt(s->t.easy, CURLOPT_WRITEDATA, s);
    curl_easy_setopt(s->t.easy, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(s->t.easy, CURLOPT_HEADERDATA, s);
    curl_easy_setopt(s->t.easy, CURLOPT_LOW_SPEED_LIMIT, idle_s ? 1L : 0L);
    curl_easy_setopt(s->t.easy, CURLOPT_LOW_SPEED_TIME, idle_s);
    if (!s->shared) {
        curl_easy_setopt(s->t.easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
        curl_easy_setopt(s->t.easy, CURLOPT_PIPEWAIT, 0L);
    }
    if (kube_multi_add(s->shared ? c->shared : c->own, &s->t, e) < 0)
        return -1;
    s->begun = true;
    return 0;
}

static void end_now(struct kube_stream *s, const struct kube_reply *r)
{
    unlist(s);
    s->telling = true;
    s->on_end(s->ctx, r);
    stream_free(s);
}

static void stream_fail(struct kube_stream *s, const struct err *why)
{
    struct kube_reply r = { .body = STR(""), .err = *why, .reason = STR("") };
    end_now(s, &r);
}

/* The credential was not good any more: once more with the one that there is now. */
static bool stream_again(struct kube_stream *s, int status)
{
    if (status != 401 || s->retried || !kube_credential_refused(s->client->credential, s->version))
        return false;
    kube_transfer_clear(&s->t);
    curl_slist_free_all(s->headers);
    s->headers = NULL;
    buf_truncate(&s->held, 0);
    s->retried = true;
    s->begun = s->ended = s->agreed = false;
    mark(s);
    kube_client_kick(s->client);
    return true;
}

static void stream_end(struct kube_stream *s)
{
    AUTO(json_free_p) struct json_doc *doc = NULL;
    struct kube_reply r = { .body = s->agreed || !s->held.p ? STR("") : buf_str(&s->held) };
    kube_reply_fill(&r, &s->t, s->client, s->rc, &doc);
    if (s->rc != CURLE_OK && !s->agreed)
        r.status = 0;
    if (s->held.full)
        err_set(&r.err, ERR_TOO_LARGE, "a stream sent more than could be held");
    if (!stream_again(s, r.status))
        end_now(s, &r);
}

/* Tells one chunk; false when the stream is gone. */
static bool tell(struct kube_stream *s, struct str chunk)
{
    s->telling = true;
    bool more = s->on_data(s->ctx, chunk);
    s->telling = false;
    if (s->closed) {
        unlist(s);
        stream_free(s);
        return false;
    }
    s->paused = !more && !s->shared;
    return true;
}

/* What there is, until its reader pauses; false when the stream is gone. */
static bool tell_held(struct kube_stream *s)
{
    if (s->agreed && !s->agreed_told) {
        s->agreed_told = true;
        if (!tell(s, STR("")))
            return false;
    }
    while (s->agreed && s->held.n && !s->paused) {
        struct buf now = s->held;
        s->held = BUF(HELD_HARD);
        bool there = tell(s, buf_str(&now));
        if (there && !s->held.p) { /* its memory again */
            s->held = now;
            buf_truncate(&s->held, 0);
        } else {
            buf_free(&now);
        }
        if (!there)
            return false;
    }
    return true;
}

static void stream_tell(struct kube_stream *s)
{
    if (!tell_held(s) || s->paused)
        return;
    if (s->ended) {
        stream_end(s);
        return;
    }
    if (s->stopped) {
        s->stopped = false;
        curl_easy_pause(s->t.easy, CURLPAUSE_CONT);
    }
    if (s->ready) /* libcurl had some at hand */
        kube_client_kick(s->client);
}

/* Each that has something once: what comes meanwhile waits for the next time. */
void kube_streams_pump(struct kube_client *c)
{
    struct kube_identity who;
    struct kube_stream *s;
    size_t turns = c->n_ready;
    while (turns-- > 0 && (s = TAILQ_FIRST(&c->ready))) {
        struct err e = { 0 };
        enum kube_credential_state state = KUBE_CREDENTIAL_READY;
        unlist(s); /* NOLINT: the analyzer does not see that what was told is off the list */
        TAILQ_INSERT_TAIL(&c->streams, s, link);
        if (!s->begun)
            state = kube_credential_get(c->credential, &who, &e);
        if (state == KUBE_CREDENTIAL_COMING)
            mark(s);
        else if (state == KUBE_CREDENTIAL_FAILED || (!s->begun && stream_begin(s, &who, &e) < 0))
            stream_fail(s, &e);
        else
            stream_tell(s);
    }
}

static void free_list(struct kube_streams *list)
{
    struct kube_stream *s;
    while ((s = TAILQ_FIRST(list))) {
        TAILQ_REMOVE(list, s, link);
        stream_free(s);
    }
}

void kube_streams_free(struct kube_client *c)
{
    free_list(&c->streams);
    free_list(&c->ready);
}

static struct kube_stream *open_stream(struct kube_client *c, struct str path, uint64_t idle_ms)
{
    struct kube_stream *s = xcalloc(1, sizeof *s);
    s->client = c;
    s->idle_ms = idle_ms;
    s->path = xcalloc(1, path.n + 1);
    if (path.n)
        memcpy(s->path, path.p, path.n);
    TAILQ_INSERT_TAIL(&c->streams, s, link);
    mark(s);
    kube_client_kick(c);
    return s;
}

struct kube_stream *kube_open(struct kube_client *c, struct str path, uint64_t idle_ms,
                              kube_data_fn *on_data, kube_reply_fn *on_end, void *ctx)
{
    struct kube_stream *s = open_stream(c, path, idle_ms);
    s->on_data = on_data;
    s->on_end = on_end;
    s->ctx = ctx;
    return s;
}

struct kube_stream *kube_open_shared(struct kube_client *c, struct str path, uint64_t idle_ms,
                                     kube_data_fn *on_data, kube_reply_fn *on_end, void *ctx)
{
    struct kube_stream *s = kube_open(c, path, idle_ms, on_data, on_end, ctx);
    s->shared = true;
    return s;
}

struct kube_stream *kube_close(struct kube_stream *s)
{
    if (!s)
        return NULL;
    s->closed = true;
    if (s->telling) /* freed when the callback returns */
        return NULL;
    unlist(s);
    stream_free(s);
    return NULL;
}

void kube_stream_resume(struct kube_stream *s)
{
    s->paused = false;
    mark(s);
    kube_client_kick(s->client);
}
