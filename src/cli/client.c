#include "cli/client.h"
#include "cli/keyring.h"

#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/reading.h"

#define CONNECT_TIMEOUT_MS 10000
#define READ_CHUNK 65536u
#define REQUEST_MAX (64u << 20)
#define HINT_MAX 4096u

struct client {
    struct address address;
    char *token; /* NULL: none */
    struct conn *conn;
};

/* $NIGHTSHIFT_SERVER, the last that one signed in to, the socket of one's own session, that of the machine. */
static void default_server(char *out, size_t n)
{
    const char *named = getenv("NIGHTSHIFT_SERVER"), *session = getenv("XDG_RUNTIME_DIR");
    if (named && named[0]) {
        snprintf(out, n, "%s", named);
        return;
    }
    AUTO(arena_free) struct arena a = { 0 };
    struct keyring_entry last;
    if (keyring_find(NULL, &a, &last)) {
        snprintf(out, n, "%s", last.server);
        return;
    }
    if (session && session[0]) {
        int used = snprintf(out, n, "unix:%s/nightshift/api.sock", session);
        if (used > 0 && (size_t)used < n && access(out + 5, F_OK) == 0)
            return;
    }
    snprintf(out, n, "unix:/run/nightshift/api.sock");
}

/* A token goes into a header line: it must not bring a second one. */
static bool token_is_plain(const char *token)
{
    for (const char *p = token; *p; p++)
        if ((unsigned char)*p <= ' ' || (unsigned char)*p >= 0x7f)
            return false;
    return strlen(token) <= 1024;
}

struct client *client_new(const char *server, const char *token, struct err *e)
{
    char found[512];
    struct address a;
    AUTO(arena_free) struct arena arena = { 0 };
    struct keyring_entry kept;
    if (!server) {
        default_server(found, sizeof found);
        server = found;
    }
    if (!token)
        token = getenv("NIGHTSHIFT_TOKEN");
    if (address_parse(server, &a, e) < 0)
        return NULL;
    if (!token && a.kind != ADDRESS_UNIX && keyring_find(a.text, &arena, &kept))
        token = kept.token;
    if (token && !token_is_plain(token)) {
        err_set(e, ERR_INVALID, "the token holds characters that no token has");
        err_hint(e, "copy it again; it begins with nst_");
        return NULL;
    }
    struct client *c = xcalloc(1, sizeof *c);
    c->address = a;
    c->token = token && token[0] ? xstrdup(token) : NULL;
    return c;
}

struct client *client_free(struct client *c)
{
    if (!c)
        return NULL;
    conn_free(c->conn);
    free(c->token);
    free(c);
    return NULL;
}

int client_make_key(char out[static CLIENT_KEY_BYTES], struct err *e)
{
    unsigned char bytes[CLIENT_KEY_BYTES / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return err_set(e, ERR_INTERNAL, "the system gives no random bytes");
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}

const struct address *client_address(const struct client *c)
{
    return &c->address;
}

static void add_escaped(struct buf *path, const char *text)
{
    for (const char *p = text; *p; p++) {
        bool letter = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z');
        if (letter || (*p >= '0' && *p <= '9') || strchr("-_.~,:", *p))
            buf_addc(path, *p);
        else
            buf_printf(path, "%%%02X", (unsigned)(unsigned char)*p);
    }
}

void path_add(struct buf *path, const char *text)
{
    buf_addc(path, '/');
    add_escaped(path, text);
}

void query_add(struct buf *path, const char *key, const char *text)
{
    buf_addc(path, path->n && memchr(path->p, '?', path->n) ? '&' : '?');
    buf_printf(path, "%s=", key);
    add_escaped(path, text);
}

/* ---- requests ---- */

static void request_begin(const struct client *c, const char *method, const char *path,
                          struct buf *out)
{
    const char *host = c->address.host[0] ? c->address.host : "localhost";
    bool six = strchr(host, ':') != NULL;
    buf_printf(out,
               "%s %s HTTP/1.1\r\nHost: %s%s%s%s%s\r\nUser-Agent: nightshift/" NS_VERSION "\r\n",
               method, path, six ? "[" : "", host, six ? "]" : "", c->address.port[0] ? ":" : "",
               c->address.port);
    if (c->token)
        buf_printf(out, "Authorization: Bearer %s\r\n", c->token);
}

void client_print_request(const struct client *c, const struct call *call, struct buf *out)
{
    request_begin(c, call->method ? call->method : "GET", call->path, out);
    buf_addz(out, "Accept: application/json\r\n");
    if (call->once)
        buf_printf(out, "Idempotency-Key: %s\r\n", call->once);
    if (call->method && strcmp(call->method, "GET") != 0)
        buf_printf(out, "Content-Type: %s\r\nContent-Length: %zu\r\n",
                   call->type ? call->type : "application/json", call->body.n);
    buf_addz(out, "\r\n");
    buf_add(out, call->body);
}

/* ---- refusals ---- */

static const struct {
    int status;
    enum err_code code;
} statuses[] = {
    { 400, ERR_INVALID },     { 401, ERR_DENIED },      { 403, ERR_DENIED },
    { 404, ERR_NOT_FOUND },   { 405, ERR_NOT_FOUND },   { 409, ERR_CONFLICT },
    { 413, ERR_TOO_LARGE },   { 422, ERR_INVALID },     { 429, ERR_UNAVAILABLE },
    { 502, ERR_UNAVAILABLE }, { 503, ERR_UNAVAILABLE }, { 504, ERR_UNAVAILABLE },
};

enum err_code client_code(int status, struct str slug)
{
    for (int i = 1; i < ERR_CODE_COUNT; i++)
        if (str_is(slug, err_info((enum err_code)i)->slug))
            return (enum err_code)i;
    for (size_t i = 0; i < ARRAY_LEN(statuses); i++)
        if (statuses[i].status == status)
            return statuses[i].code;
    return ERR_INTERNAL;
}

int client_refused(int status, struct str body, char *field, size_t field_n, struct err *e)
{
    struct str slug = { "", 0 }, detail = slug, hint = slug, at = slug;
    struct err why;
    AUTO(json_free_p) struct json_doc *doc = json_read(body, &why);
    const struct json *root = doc ? json_root(doc) : NULL;
    if (json_is_object(root) && (json_get_str(root, "code", 64, &slug, &why) < 0 ||
                                 json_get_str(root, "detail", HINT_MAX, &detail, &why) < 0 ||
                                 json_get_str(root, "hint", HINT_MAX, &hint, &why) < 0 ||
                                 json_get_str(root, "field", HINT_MAX, &at, &why) < 0))
        slug = (struct str){ "", 0 };
    if (detail.n)
        err_set(e, client_code(status, slug), "%.*s", STR_ARG(detail));
    else
        err_set(e, client_code(status, slug), "the server answered with status %d", status);
    if (hint.n)
        err_hint(e, "%.*s", STR_ARG(hint));
    else if (status == 401)
        err_hint(e, "sign in with nightshift login, or set NIGHTSHIFT_TOKEN to a token of yours");
    if (field)
        snprintf(field, field_n, "%.*s", STR_ARG(at));
    return -1;
}

/* ---- calls ---- */

/* CONN_EOF: the connection was gone before the first byte of an answer came. */
static enum conn_io read_answer(struct conn *conn, struct reading *r, struct err *e)
{
    AUTO(free_p) char *chunk = xmalloc(READ_CHUNK);
    bool begun = false;
    while (r->response.state != RESPONSE_DONE) {
        size_t n = 0;
        enum conn_io io = conn_read(conn, chunk, READ_CHUNK, &n, e);
        if (io == CONN_BROKEN || (io == CONN_EOF && !begun))
            return io;
        if (io == CONN_EOF)
            return response_eof(&r->response, e) < 0 ? CONN_BROKEN : CONN_OK;
        if (io == CONN_AGAIN) {
            if (conn_wait_readable(conn, CALL_TIMEOUT_MS, e) < 0)
                return CONN_BROKEN;
            continue;
        }
        begun = true;
        if (reading_add(r, (struct str){ chunk, n }, e) < 0)
            return CONN_BROKEN;
    }
    return CONN_OK;
}

static enum conn_io exchange(struct client *c, struct str request, struct reading *r, struct err *e)
{
    enum conn_io io = conn_write_all(c->conn, request, CALL_TIMEOUT_MS, e);
    if (io == CONN_OK)
        io = read_answer(c->conn, r, e);
    if (io != CONN_OK || !r->response.keep_alive)
        c->conn = conn_free(c->conn);
    return io;
}

int client_call(struct client *c, const struct call *call, struct answer *out, struct err *e)
{
    AUTO(buf_free) struct buf request = BUF(REQUEST_MAX);
    AUTO(reading_clear) struct reading r = { .raw = BUF(ANSWER_MAX), .body = BUF(ANSWER_MAX) };
    out->field[0] = '\0';
    client_print_request(c, call, &request);
    if (buf_check(&request, e) < 0)
        return -1;
    enum conn_io io = CONN_EOF;
    /* A kept connection may have been closed meanwhile: that shows as EOF, and once is enough. */
    for (int kept = c->conn != NULL; io == CONN_EOF && kept >= 0; kept--) {
        if (!c->conn && !(c->conn = conn_open(&c->address, CONNECT_TIMEOUT_MS, e)))
            return -1;
        io = exchange(c, buf_str(&request), &r, e);
    }
    if (io == CONN_EOF) {
        err_set(e, ERR_UNAVAILABLE, "the server closed the connection without an answer");
        return c->address.kind == ADDRESS_TCP
                 ? err_hint(e, "does it speak TLS? then its address begins with https://")
                 : -1;
    }
    if (io != CONN_OK)
        return -1;
    if (r.response.status >= 400)
        return client_refused(r.response.status, buf_str(&r.body), out->field, sizeof out->field,
                              e);
    out->status = r.response.status;
    out->body = r.body;
    r.body = BUF(0);
    return 0;
}

/* ---- streams ---- */

struct feed {
    struct conn *conn;
    struct response response;
    struct buf raw;
    size_t at; /* of raw, up to here it is used */
    bool eof;
    char chunk[READ_CHUNK];
};

static struct str rest_of(const struct feed *s)
{
    struct str all = buf_str(&s->raw);
    return s->at ? (struct str){ all.p + s->at, all.n - s->at } : all;
}

struct feed *feed_open(struct client *c, const char *path, struct err *e)
{
    AUTO(buf_free) struct buf request = BUF(16384);
    request_begin(c, "GET", path, &request);
    buf_addz(&request, "\r\n");
    if (buf_check(&request, e) < 0)
        return NULL;
    AUTO(conn_free_p) struct conn *conn = conn_open(&c->address, CONNECT_TIMEOUT_MS, e);
    if (!conn || conn_write_all(conn, buf_str(&request), CALL_TIMEOUT_MS, e) != CONN_OK)
        return NULL;
    struct feed *s = xmalloc(sizeof *s);
    *s = (struct feed){ .conn = TAKE(conn), .raw = BUF(4u << 20) };
    return s;
}

struct feed *feed_free(struct feed *s)
{
    if (!s)
        return NULL;
    conn_free(s->conn);
    buf_free(&s->raw);
    free(s);
    return NULL;
}

void feed_free_p(struct feed **s)
{
    *s = feed_free(*s);
}

int feed_fd(const struct feed *s)
{
    return conn_fd(s->conn);
}

bool feed_is_open(const struct feed *s)
{
    return s->response.state != RESPONSE_HEAD && s->response.status < 400;
}

/* The body of a refusal is short: wait for it. */
static enum feed_is feed_refused(struct feed *s, struct err *e)
{
    AUTO(reading_clear)
    struct reading r = { .response = s->response, .raw = BUF(1u << 20), .body = BUF(1u << 20) };
    struct err why;
    if (reading_add(&r, rest_of(s), &why) == 0 && r.response.state != RESPONSE_DONE)
        (void)read_answer(s->conn, &r, &why);
    client_refused(s->response.status, buf_str(&r.body), NULL, 0, e);
    return FEED_FAILED;
}

static enum feed_is read_head(struct feed *s, struct err *e)
{
    size_t used = 0;
    struct str in = rest_of(s);
    if (in.n == 0)
        return FEED_NOTHING;
    if (response_head(&s->response, in, &used, e) < 0)
        return FEED_FAILED;
    s->at += used;
    if (s->response.state == RESPONSE_HEAD)
        return used ? read_head(s, e) : FEED_NOTHING;
    if (s->response.status >= 400)
        return feed_refused(s, e);
    return FEED_BYTES;
}

/* Bytes of the body out of what was read already. */
static enum feed_is take(struct feed *s, struct str *out_bytes, struct err *e)
{
    if (s->response.state == RESPONSE_HEAD) {
        enum feed_is is = read_head(s, e);
        if (is != FEED_BYTES)
            return is;
    }
    for (size_t used = 1; used && s->response.state != RESPONSE_DONE;) {
        struct str in = rest_of(s);
        if (response_body(&s->response, in, &used, out_bytes, e) < 0)
            return FEED_FAILED;
        s->at += used;
        if (out_bytes->n)
            return FEED_BYTES;
    }
    return s->response.state == RESPONSE_DONE ? FEED_END : FEED_NOTHING;
}

enum feed_is feed_read(struct feed *s, struct str *out_bytes, struct err *e)
{
    for (;;) {
        enum feed_is is = take(s, out_bytes, e);
        if (is != FEED_NOTHING)
            return is;
        if (s->eof)
            return response_eof(&s->response, e) < 0 ? FEED_FAILED : FEED_END;
        size_t n = 0;
        enum conn_io io = conn_read(s->conn, s->chunk, sizeof s->chunk, &n, e);
        if (io == CONN_AGAIN)
            return FEED_NOTHING;
        if (io == CONN_BROKEN)
            return FEED_FAILED;
        s->eof = io == CONN_EOF;
        buf_drop_front(&s->raw, s->at);
        s->at = 0;
        buf_add(&s->raw, (struct str){ s->chunk, n });
        if (buf_check(&s->raw, e) < 0)
            return FEED_FAILED;
    }
}
