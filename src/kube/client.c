#include "kube/client.h"

#include "base/json.h"
#include "kube/state.h"

#define KEEP_BYTES ((size_t)256 << 10) /* of a buffer, for the next answer in it */
#define POOL_MAX 256
/* Of 64 calls in one connection a third or less were at work in the server, in four of 16 half of them: see
 * bench/results.  Up to so many take one connection, and only more of them another. */
#define LANE_CALLS 16
#define RESEND_MAX 4 /* a server may close one connection after the other */

struct kube_call {
    TAILQ_ENTRY(kube_call) link;
    struct kube_client *client;
    struct kube_handle *handle; /* NULL: it waits */
    kube_reply_fn *fn;
    void *ctx;
    char *path; /* path, method and content type lie behind the body */
    const char *method, *content_type;
    struct str body;
    size_t path_n, max_bytes;
    uint64_t timeout_ms, version; /* of the identity it was sent with */
    bool renewed;                 /* tried once more with another token */
    uint8_t resent;               /* times over another connection */
    char text[];
};

struct kube_handle {
    struct kube_transfer t; /* first: libcurl gives it back */
    struct kube_handle *next;
    struct kube_call *call;
    struct curl_slist *headers;
    struct buf body;
};

/* ---- handles ---- */

static void handle_free(struct kube_handle *h)
{
    kube_transfer_clear(&h->t);
    curl_slist_free_all(h->headers);
    buf_free(&h->body);
    free(h);
}

static void pool_empty(struct kube_client *c)
{
    while (c->pool) {
        struct kube_handle *h = c->pool;
        c->pool = h->next;
        handle_free(h);
    }
}

static size_t take_body(char *p, size_t size, size_t n, void *ctx)
{
    struct kube_handle *h = ctx;
    buf_add(&h->body, (struct str){ p, size * n });
    return h->body.full ? 0 : size * n;
}

static void on_done(struct kube_transfer *t, CURLcode rc);

static struct kube_handle *handle_get(struct kube_client *c, const struct kube_identity *who,
                                      struct err *e)
{
    if (c->pool_version != who->version)
        pool_empty(c);
    c->pool_version = who->version;
    struct kube_handle *h = c->pool;
    if (h) {
        c->pool = h->next;
        return h;
    }
    h = xcalloc(1, sizeof *h);
    h->t.done = on_done;
    if (kube_transfer_init(&h->t, c->config, who, e) < 0) {
        handle_free(h);
        return NULL;
    }
    curl_easy_setopt(h->t.easy, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(h->t.easy, CURLOPT_WRITEDATA, h);
    return h;
}

/* Back into the pool, unless it was made for somebody we are no longer. */
static void handle_put(struct kube_client *c, struct kube_handle *h, uint64_t version)
{
    kube_multi_remove(&h->t);
    curl_easy_setopt(h->t.easy, CURLOPT_HTTPHEADER, NULL);
    curl_slist_free_all(h->headers);
    h->headers = NULL;
    h->call = NULL;
    if (version != c->pool_version) {
        handle_free(h);
        return;
    }
    if (h->body.cap > KEEP_BYTES)
        buf_free(&h->body);
    h->body.full = false;
    h->next = c->pool;
    c->pool = h;
}

struct curl_slist *kube_headers(const struct kube_identity *who, const char *content_type)
{
    AUTO(buf_free) struct buf type = BUF(256);
    struct curl_slist *list = curl_slist_append(NULL, "Accept: application/json");
    if (who->bearer)
        list = curl_slist_append(list, who->bearer);
    if (!content_type)
        return list;
    buf_printf(&type, "Content-Type: %s", content_type);
    list = curl_slist_append(list, type.full ? "Content-Type: application/json" : type.p);
    return curl_slist_append(list, "Expect:"); /* never wait for a 100 */
}

/* ---- a call's life ---- */

static void set_method(const struct kube_call *call, CURL *easy)
{
    bool plain = strcmp(call->method, "GET") == 0 && call->body.n == 0;
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, plain ? NULL : call->method);
    if (call->body.n == 0 && strcmp(call->method, "POST") != 0) {
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, NULL);
        curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
        return;
    }
    curl_easy_setopt(easy, CURLOPT_POST, 1L);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body.n);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, call->body.p);
}

static struct kube_multi *lane_for_one(const struct kube_client *c)
{
    struct kube_multi *least = c->lane[0];
    for (size_t i = 0; i < KUBE_LANES; i++) {
        if (kube_multi_count(c->lane[i]) < LANE_CALLS)
            return c->lane[i];
        if (kube_multi_count(c->lane[i]) < kube_multi_count(least))
            least = c->lane[i];
    }
    return least;
}

static int call_begin(struct kube_client *c, struct kube_call *call,
                      const struct kube_identity *who, struct err *e)
{
    struct kube_handle *h = handle_get(c, who, e);
    if (!h)
        return -1;
    h->call = call;
    h->t.why[0] = '\0';
    buf_truncate(&h->body, 0);
    h->body.limit = call->max_bytes;
    h->headers = kube_headers(who, call->body.n ? call->content_type : NULL);
    set_method(call, h->t.easy);
    curl_easy_setopt(h->t.easy, CURLOPT_HTTPHEADER, h->headers);
    curl_easy_setopt(h->t.easy, CURLOPT_TIMEOUT_MS, (long)call->timeout_ms);
    if (kube_transfer_url(&h->t, c->config, (struct str){ call->path, call->path_n }, e) < 0 ||
        kube_multi_add(lane_for_one(c), &h->t, e) < 0) {
        handle_put(c, h, who->version);
        return -1;
    }
    call->handle = h;
    call->version = who->version;
    TAILQ_REMOVE(&c->waiting, call, link);
    c->n_waiting--;
    TAILQ_INSERT_TAIL(&c->running, call, link);
    c->in_flight++;
    return 0;
}

/* Out of whatever list it is in. */
static void call_unlink(struct kube_call *call)
{
    struct kube_client *c = call->client;
    if (call->handle) {
        TAILQ_REMOVE(&c->running, call, link);
        c->in_flight--;
    } else {
        TAILQ_REMOVE(&c->waiting, call, link);
        c->n_waiting--;
    }
}

/* It was not begun at all. */
static void call_fail(struct kube_call *call, const struct err *why)
{
    struct kube_reply r = { .body = STR(""), .err = *why, .reason = STR("") };
    call_unlink(call);
    call->fn(call->ctx, &r);
    free(call);
}

/* To the front again, with the credential and the connection that there are now. */
static void call_again(struct kube_call *call)
{
    struct kube_client *c = call->client;
    call_unlink(call);
    handle_put(c, call->handle, call->version);
    call->handle = NULL;
    TAILQ_INSERT_HEAD(&c->waiting, call, link);
    c->n_waiting++;
}

/* A connection that the server is about to close (GOAWAY) refuses what is new, and libcurl 7.88 offers it to the
 * same one until it gives up.  It gives up only on what had no byte of an answer, and has said it several times by
 * then: once more, elsewhere, is no greater risk. */
static bool is_unsent(const struct kube_handle *h, CURLcode rc)
{
    long status = 0;
    curl_easy_getinfo(h->t.easy, CURLINFO_RESPONSE_CODE, &status);
    bool gave_up = strncmp(h->t.why, "Connection died, tried", 22) == 0; /* whatever its code is */
    return status == 0 && (rc == CURLE_SEND_ERROR || (rc != CURLE_OK && gave_up));
}

/* The two causes that are nobody's fault. */
static bool try_again(struct kube_handle *h, const struct kube_reply *r, CURLcode rc)
{
    struct kube_call *call = h->call;
    struct kube_client *c = call->client;
    if (is_unsent(h, rc) && call->resent < RESEND_MAX) {
        call->resent++;
        kube_client_retire(c, h->t.multi);
    } else if (r->status == 401 && !call->renewed &&
               kube_credential_refused(c->credential, call->version)) {
        call->renewed = true;
    } else {
        return false;
    }
    call_again(call);
    return true;
}

static void on_done(struct kube_transfer *t, CURLcode rc)
{
    AUTO(json_free_p) struct json_doc *doc = NULL;
    struct kube_handle *h = (struct kube_handle *)t;
    struct kube_call *call = h->call;
    struct kube_client *c = call->client;
    struct kube_reply r = { .body = h->body.p ? buf_str(&h->body) : STR("") };
    if (rc == CURLE_OPERATION_TIMEDOUT)
        kube_client_retire(c, t->multi);
    kube_reply_fill(&r, t, c, rc, &doc);
    if (rc != CURLE_OK)
        r.status = 0;
    if (h->body.full)
        err_set(&r.err, ERR_TOO_LARGE, "the API server's answer to %.160s is larger than %zu bytes",
                call->path, call->max_bytes);
    if (try_again(h, &r, rc))
        return;
    call_unlink(call);
    kube_multi_remove(t);
    call->fn(call->ctx, &r);
    handle_put(c, h, call->version);
    free(call);
}

struct kube_call *kube_send(struct kube_client *c, const struct kube_request *rq, kube_reply_fn *fn,
                            void *ctx)
{
    const char *method = rq->method ? rq->method : "GET";
    const char *type = rq->content_type ? rq->content_type : "application/json";
    size_t method_n = strlen(method) + 1, type_n = strlen(type) + 1;
    struct kube_call *call =
        xmalloc(sizeof *call + rq->body.n + 1 + rq->path.n + 1 + method_n + type_n);
    *call = (struct kube_call){
        .client = c,
        .fn = fn,
        .ctx = ctx,
        .body = { call->text, rq->body.n },
        .path = call->text + rq->body.n + 1,
        .path_n = rq->path.n,
        .max_bytes = rq->max_bytes ? rq->max_bytes : KUBE_BYTES_MAX,
        .timeout_ms = rq->timeout_ms ? rq->timeout_ms : KUBE_TIMEOUT_MS,
    };
    if (rq->body.n)
        memcpy(call->text, rq->body.p, rq->body.n);
    if (rq->path.n)
        memcpy(call->path, rq->path.p, rq->path.n);
    call->path[rq->path.n] = '\0';
    call->method = memcpy(call->path + rq->path.n + 1, method, method_n);
    call->content_type = memcpy(call->path + rq->path.n + 1 + method_n, type, type_n);
    TAILQ_INSERT_TAIL(&c->waiting, call, link);
    c->n_waiting++;
    kube_client_kick(c);
    return call;
}

struct kube_call *kube_cancel(struct kube_call *call)
{
    if (!call)
        return NULL;
    call_unlink(call);
    if (call->handle)
        handle_put(call->client, call->handle, call->version);
    kube_client_kick(call->client); /* there is room for another */
    free(call);
    return NULL;
}

/* ---- the client ---- */

static void sweep_retired(struct kube_client *c)
{
    for (size_t i = 0; i < KUBE_RETIRED_MAX; i++)
        if (c->retired[i] && kube_multi_count(c->retired[i]) == 0)
            c->retired[i] = kube_multi_free(c->retired[i]);
}

/* As many as there is room for.  Those that cannot be begun are told; their callbacks may send more, which
 * waits for the next time. */
static void pump_calls(struct kube_client *c)
{
    struct kube_call *call;
    struct kube_identity who;
    size_t turns = c->n_waiting;
    while (turns-- > 0 && c->in_flight < c->in_flight_max && (call = TAILQ_FIRST(&c->waiting))) {
        struct err e = { 0 };
        enum kube_credential_state state = kube_credential_get(c->credential, &who, &e);
        if (state == KUBE_CREDENTIAL_COMING)
            return;
        /* What is told is off the list: NOLINT, the analyzer does not follow it there. */
        if (state == KUBE_CREDENTIAL_FAILED || call_begin(c, call, &who, &e) < 0) /* NOLINT */
            call_fail(call, &e);                                                  /* NOLINT */
    }
}

static void pump(void *ctx)
{
    struct kube_client *c = ctx;
    if (c->pumping)
        return;
    c->pumping = true;
    pump_calls(c);
    kube_streams_pump(c);
    kube_execs_pump(c);
    c->pumping = false;
}

static void on_kick(void *ctx)
{
    sweep_retired(ctx);
    pump(ctx);
}

void kube_client_kick(struct kube_client *c)
{
    loop_timer_set(c->kick, 0, 0);
}

static void on_credential(void *ctx)
{
    kube_client_kick(ctx);
}

/* One that is not used any more, in its place another; false: there is no room for it, or no memory. */
static bool replace(struct kube_client *c, struct kube_multi **at)
{
    struct err e = { 0 };
    size_t i = 0;
    while (i < KUBE_RETIRED_MAX && c->retired[i])
        i++;
    struct kube_multi *fresh = i < KUBE_RETIRED_MAX ? kube_multi_new(c->loop, pump, c, &e) : NULL;
    if (!fresh)
        return false;
    c->retired[i] = *at;
    *at = fresh;
    return true;
}

void kube_client_retire(struct kube_client *c, const struct kube_multi *m)
{
    bool now = m == c->shared;
    for (size_t i = 0; i < KUBE_LANES; i++)
        now |= m == c->lane[i];
    if (!now || !replace(c, &c->shared))
        return;
    for (size_t i = 0; i < KUBE_LANES; i++)
        if (!replace(c, &c->lane[i]))
            break;
    log_event(c->log, LOG_WARN_, "kube.connection.retired", "server=%s", c->config->server);
    kube_client_kick(c);
}

struct kube_client *kube_client_new(struct loop *l, struct log *log,
                                    const struct kube_config *config, struct err *e)
{
    struct kube_client *c = xcalloc(1, sizeof *c);
    c->loop = l;
    c->log = log;
    c->config = config;
    c->in_flight_max = KUBE_IN_FLIGHT;
    TAILQ_INIT(&c->waiting);
    TAILQ_INIT(&c->running);
    TAILQ_INIT(&c->streams);
    TAILQ_INIT(&c->ready);
    TAILQ_INIT(&c->execs);
    c->kick = loop_timer(l, on_kick, c);
    c->credential = kube_credential_new(l, config, on_credential, c);
    bool there = (c->shared = kube_multi_new(l, pump, c, e)) != NULL;
    for (size_t i = 0; there && i < KUBE_LANES; i++)
        there = (c->lane[i] = kube_multi_new(l, pump, c, e)) != NULL;
    c->own = there ? kube_multi_new(l, pump, c, e) : NULL;
    return c->own ? c : kube_client_free(c);
}

static void free_calls(struct kube_calls *list)
{
    struct kube_call *call;
    while ((call = TAILQ_FIRST(list))) {
        TAILQ_REMOVE(list, call, link);
        if (call->handle)
            handle_free(call->handle);
        free(call);
    }
}

struct kube_client *kube_client_free(struct kube_client *c)
{
    if (!c)
        return NULL;
    kube_streams_free(c);
    kube_execs_free(c);
    free_calls(&c->running);
    free_calls(&c->waiting);
    pool_empty(c);
    kube_multi_free(c->shared);
    kube_multi_free(c->own);
    for (size_t i = 0; i < KUBE_LANES; i++)
        kube_multi_free(c->lane[i]);
    for (size_t i = 0; i < KUBE_RETIRED_MAX; i++)
        kube_multi_free(c->retired[i]);
    kube_credential_free(c->credential);
    loop_unwatch(c->kick);
    free(c);
    return NULL;
}

void kube_client_free_p(struct kube_client **c)
{
    *c = kube_client_free(*c);
}

void kube_client_set_in_flight(struct kube_client *c, size_t max)
{
    max = MIN(max, (size_t)POOL_MAX);
    c->in_flight_max = MAX(max, (size_t)1);
    kube_client_kick(c);
}

size_t kube_client_waiting(const struct kube_client *c)
{
    return c->n_waiting;
}
