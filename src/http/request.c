#include <stdio.h>
#include <strings.h>

#include "base/parse.h"
#include "http/state.h"
#include "sys/weak.h"

/* ---- what bodies hold of our memory, by caller ---- */

static uint64_t held_by_peer(const struct http_request *rq)
{
    uint64_t n = 0;
    map_get(&rq->conn->server->held, rq->peer_key, &n);
    return n;
}

static void let_go(struct http_request *rq)
{
    struct map *held = &rq->conn->server->held;
    uint64_t rest = held_by_peer(rq) - rq->held;
    rq->held = 0;
    if (rest)
        map_set(held, rq->peer_key, rest);
    else
        map_remove(held, rq->peer_key);
}

/* false: with these bytes the caller would have too much here. */
static bool hold(struct http_request *rq, size_t bytes, struct err *e)
{
    struct http_server *s = rq->conn->server;
    char most[32];
    uint64_t limit = (uint64_t)s->config.body_max * BODIES_PER_PEER;
    uint64_t all = held_by_peer(rq) + bytes;
    if (all > limit && !weak_here("body_share")) {
        err_set(e, ERR_UNAVAILABLE, "you are sending more than %s at once",
                format_size(limit, most));
        err_hint(e, "send fewer large requests at a time");
        return false;
    }
    map_set(&s->held, rq->peer_key, all);
    rq->held += bytes;
    return true;
}

/* ---- begin and end ---- */

void *request_begin(void *server, const char *uri, struct MHD_Connection *mhd)
{
    (void)server;
    struct conn *c =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    struct http_request *rq = xcalloc(1, sizeof *rq);
    struct err e;
    rq->conn = c;
    rq->peer = c->peer;
    rq->peer_key = c->peer_key;
    rq->body = BUF(c->server->config.body_max);
    if (target_parse(str_of(uri ? uri : ""), &rq->arena, &rq->target, &e) < 0) {
        rq->bad_status = e.code == ERR_TOO_LARGE ? MHD_HTTP_URI_TOO_LONG : MHD_HTTP_BAD_REQUEST;
        rq->bad = arena_new(&rq->arena, struct err);
        *rq->bad = e;
        rq->target.path = "";
    }
    c->rq = rq;
    conn_receive_begin(c);
    return rq;
}

static void open_for_handler(struct http_request *rq)
{
    struct http_server *s = rq->conn->server;
    rq->open = true;
    rq->next = s->requests;
    if (rq->next)
        rq->next->prev = rq;
    s->requests = rq;
    s->requests_open++;
}

void request_end(struct http_request *rq)
{
    struct http_server *s = rq->conn->server;
    rq->conn->rq = NULL;
    conn_receive_begin(rq->conn);
    if (rq->open) {
        *(rq->prev ? &rq->prev->next : &s->requests) = rq->next;
        if (rq->next)
            rq->next->prev = rq->prev;
        s->requests_open--;
    }
    stream_completed(rq);
    if (rq->response)
        MHD_destroy_response(rq->response);
    buf_free(&rq->stream.queue);
    buf_free(&rq->body);
    let_go(rq);
    if (rq->counted)
        conn_give_share(s, rq->peer_key);
    arena_free(&rq->arena);
    free(rq);
}

/* ---- what can be refused before the body ---- */

static const char *const methods[] = { "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS" };
#define METHODS "GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS"

/* Each check returns the status of its refusal, or 0. */
static int check_rate(struct http_request *rq, struct err *e)
{
    struct http_server *s = rq->conn->server;
    uint64_t wait_ms = s->rate ? rate_take(s->rate, rq->peer_key, server_now_ms()) : 0;
    if (wait_ms == 0)
        return 0;
    char seconds[24];
    snprintf(seconds, sizeof seconds, "%llu", (unsigned long long)(wait_ms + 999) / 1000);
    http_add_header(rq, "Retry-After", seconds);
    err_set(e, ERR_UNAVAILABLE, "too many requests; you may send %u a second",
            s->config.rate_per_s);
    err_hint(e, "wait %s s and try again", seconds);
    return MHD_HTTP_TOO_MANY_REQUESTS;
}

static int check_method(struct http_request *rq, struct err *e)
{
    for (size_t i = 0; i < ARRAY_LEN(methods); i++)
        if (strcmp(rq->method, methods[i]) == 0)
            return 0;
    err_set(e, ERR_INVALID, "the method '%.40s' is not offered", rq->method);
    err_hint(e, "there are: " METHODS);
    http_add_header(rq, "Allow", METHODS);
    return MHD_HTTP_METHOD_NOT_ALLOWED;
}

static int check_line(struct http_request *rq, struct err *e)
{
    if (rq->bad)
        *e = *rq->bad;
    return rq->bad_status;
}

static int check_head_size(struct http_request *rq, struct err *e)
{
    size_t n = MHD_get_connection_info(rq->conn->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE)
                   ->header_size;
    if (n <= HEAD_MAX)
        return 0;
    err_set(e, ERR_TOO_LARGE, "the headers have %zu bytes; the limit is %d", n, HEAD_MAX);
    return MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE;
}

static int refuse_body(struct http_request *rq, struct err *e)
{
    char most[32];
    err_set(e, ERR_TOO_LARGE, "the body is larger than %s",
            format_size(rq->conn->server->config.body_max, most));
    return MHD_HTTP_CONTENT_TOO_LARGE;
}

/* Headers of which two readings would be two requests: whoever stands between us and the client may
 * have made the other one. */
struct framing {
    size_t lengths, codings, hosts;
    const char *odd; /* a name that is none */
};

static enum MHD_Result count_header(void *ctx, enum MHD_ValueKind kind, const char *name,
                                    const char *value)
{
    struct framing *f = ctx;
    (void)kind;
    (void)value;
    f->lengths += strcasecmp(name, "Content-Length") == 0;
    f->codings += strcasecmp(name, "Transfer-Encoding") == 0;
    f->hosts += strcasecmp(name, "Host") == 0;
    /* The library appends a folded line to the name of its header: "Content-Length5". */
    bool folded = (strncasecmp(name, "Content-Length", 14) == 0 && name[14]) ||
                  (strncasecmp(name, "Transfer-Encoding", 17) == 0 && name[17]);
    if (folded || !header_is_token(name))
        f->odd = name;
    return MHD_YES;
}

static int check_framing(struct http_request *rq, struct err *e)
{
    struct framing f = { 0 };
    const char *coding = http_header(rq, "Transfer-Encoding");
    MHD_get_connection_values(rq->conn->mhd, MHD_HEADER_KIND, count_header, &f);
    if (f.odd)
        err_set(e, ERR_INVALID, "'%.40s' is not the name of a header", f.odd);
    else if (f.lengths + f.codings > 1)
        err_set(e, ERR_INVALID, "a request has one Content-Length or one Transfer-Encoding");
    else if (f.hosts > 1)
        err_set(e, ERR_INVALID, "a request has one Host");
    else if (coding && strcasecmp(coding, "chunked") != 0)
        err_set(e, ERR_INVALID, "Transfer-Encoding: '%.40s' is not 'chunked'", coding);
    else
        return 0;
    err_hint(e, "the client, or a proxy before this server, is broken");
    http_add_header(rq, "Connection", "close"); /* where the next request begins is not known */
    return MHD_HTTP_BAD_REQUEST;
}

static int check_body_size(struct http_request *rq, struct err *e)
{
    const char *length = http_header(rq, "Content-Length");
    uint64_t bytes = 0;
    if (length && parse_u64(str_of(length), UINT64_MAX, &bytes, e) < 0) {
        err_wrap(e, "Content-Length");
        http_add_header(rq, "Connection", "close");
        return MHD_HTTP_BAD_REQUEST;
    }
    return bytes > rq->conn->server->config.body_max ? refuse_body(rq, e) : 0;
}

static int check_head(struct http_request *rq, struct err *e)
{
    static int (*const checks[])(struct http_request *, struct err *) = {
        peer_by_proxy,   check_rate,    check_method,    check_line,
        check_head_size, check_framing, check_body_size,
    };
    int status = 0;
    for (size_t i = 0; i < ARRAY_LEN(checks) && status == 0; i++)
        status = checks[i](rq, e);
    return status;
}

static bool has_body(const struct http_request *rq)
{
    const char *length = http_header(rq, "Content-Length");
    return (length && strcmp(length, "0") != 0) || http_header(rq, "Transfer-Encoding");
}

/* ---- step by step, as the library calls ---- */

/* Hands the answer over, or lets the connection sleep until there is one. */
static enum MHD_Result answer_or_wait(struct http_request *rq)
{
    if (!rq->answered) {
        rq->suspended = true;
        MHD_suspend_connection(rq->conn->mhd);
        return MHD_YES;
    }
    rq->phase = PHASE_SENT;
    struct MHD_Response *response = TAKE(rq->response);
    enum MHD_Result rc = MHD_queue_response(rq->conn->mhd, (unsigned)rq->status, response);
    MHD_destroy_response(response);
    return rc;
}

static enum MHD_Result on_head(struct http_request *rq)
{
    struct err e;
    int status = check_head(rq, &e);
    rq->phase = PHASE_BODY;
    if (status == 0)
        return MHD_YES;
    reply_problem(rq, status, &e, NULL);
    if (!has_body(rq)) /* the library keeps a connection only when asked after the whole request */
        return MHD_YES;
    conn_receive_done(rq->conn);
    return answer_or_wait(rq);
}

/* The library takes no answer before the end of a body; so what is too much is read and dropped,
 * for a while. */
static enum MHD_Result on_body(struct http_request *rq, struct str bytes)
{
    struct err e;
    if (!rq->body.full && !hold(rq, bytes.n, &e)) {
        conn_refuse_and_cut(rq->conn, MHD_HTTP_SERVICE_UNAVAILABLE, &e);
        return MHD_NO;
    }
    buf_add(&rq->body, bytes);
    if (!rq->body.full)
        return MHD_YES;
    rq->drained += bytes.n;
    if (rq->drained <= DRAIN_MAX)
        return MHD_YES;
    conn_refuse_and_cut(rq->conn, refuse_body(rq, &e), &e);
    return MHD_NO;
}

static enum MHD_Result on_whole(struct http_request *rq)
{
    struct http_server *s = rq->conn->server;
    struct err e;
    conn_receive_done(rq->conn);
    rq->phase = PHASE_PENDING;
    if (rq->body.full)
        reply_problem(rq, refuse_body(rq, &e), &e, NULL);
    if (!rq->answered) {
        open_for_handler(rq);
        s->config.handler(s->config.ctx, rq);
    }
    return answer_or_wait(rq);
}

enum MHD_Result request_step(struct http_request *rq, struct str upload)
{
    switch (rq->phase) {
    case PHASE_HEAD: return on_head(rq);
    case PHASE_BODY: return upload.n ? on_body(rq, upload) : on_whole(rq);
    case PHASE_PENDING: return answer_or_wait(rq);
    case PHASE_SENT: break;
    }
    return MHD_YES;
}

void request_resume(struct http_request *rq)
{
    if (!rq->suspended)
        return;
    rq->suspended = false;
    MHD_resume_connection(rq->conn->mhd);
    server_wake(rq->conn->server);
}

/* ---- what a handler may ask ---- */

const char *http_method(const struct http_request *rq)
{
    return rq->method;
}

const char *http_path(const struct http_request *rq)
{
    return rq->target.path;
}

const char *http_query(const struct http_request *rq, const char *key)
{
    return target_find(&rq->target, key);
}

bool http_query_next(const struct http_request *rq, size_t i, const char **key, const char **value)
{
    return target_next(&rq->target, i, key, value);
}

int http_read_form(struct http_request *rq, struct err *e)
{
    static const char form[] = "application/x-www-form-urlencoded";
    const char *type = http_header(rq, "Content-Type");
    size_t n = sizeof form - 1;
    if (!type || strncasecmp(type, form, n) != 0 || !strchr("; \t", type[n])) {
        err_set(e, ERR_INVALID, "header 'Content-Type': the body must be %s", form);
        return err_hint(e, "send the header Content-Type: %s", form);
    }
    if (rq->body.n > HTTP_FORM_MAX)
        return err_set(e, ERR_TOO_LARGE, "the form is larger than %d bytes", HTTP_FORM_MAX);
    if (target_parse_pairs(http_body(rq), &rq->arena, &rq->form, e) == 0)
        return 0;
    err_set(e, ERR_INVALID, "the body is not a form");
    return err_hint(e, "key=value&key=value, with %% and two digits for special signs; at most %d",
                    TARGET_PAIRS_MAX);
}

const char *http_form(const struct http_request *rq, const char *key)
{
    return target_find(&rq->form, key);
}

bool http_form_next(const struct http_request *rq, size_t i, const char **key, const char **value)
{
    return target_next(&rq->form, i, key, value);
}

const char *http_header(const struct http_request *rq, const char *name)
{
    return MHD_lookup_connection_value(rq->conn->mhd, MHD_HEADER_KIND, name);
}

const char *http_cookie(const struct http_request *rq, const char *name)
{
    return MHD_lookup_connection_value(rq->conn->mhd, MHD_COOKIE_KIND, name);
}

struct str http_body(const struct http_request *rq)
{
    return rq->body.p ? buf_str(&rq->body) : STR("");
}

const struct http_peer *http_peer(const struct http_request *rq)
{
    return &rq->peer;
}

struct arena *http_arena(struct http_request *rq)
{
    return &rq->arena;
}
