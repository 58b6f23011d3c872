/* http - an HTTP/1.1 server on the loop: whole requests in, replies now or later (libmicrohttpd).
 *
 * It knows sockets, not jobs.  A handler gets a request when its body is complete and answers it
 * once, at once or after any number of turns of the loop: with a reply or a stream.
 * Everything is bounded: headers, bodies (413), time (408), requests a second from one peer (429),
 * connections, and what waits to be sent to a slow reader of a stream (it is cut off).
 * Refusals made here are application/problem+json like those of the handlers.
 */
#ifndef NS_HTTP_HTTP_H
#define NS_HTTP_HTTP_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "sys/log.h"
#include "sys/loop.h"

struct http_server;
struct http_request;

/* Who is calling.  On a unix socket the kernel vouches for uid, gid and pid; behind a trusted proxy it is whom
 * the proxy names. */
struct http_peer {
    bool local;   /* unix socket */
    bool proxied; /* by a trusted proxy, whether or not its words could be read */
    bool secure;  /* by TLS, here or, as a trusted proxy says, there */
    uint32_t uid, gid;
    int32_t pid;
    char address[64]; /* "127.0.0.1:40312"; "203.0.113.7" behind a proxy; "unix" */
};

typedef void http_handler_fn(void *ctx, struct http_request *rq);

struct http_config {
    /* NULL: TCP.  An old socket file there is replaced, a living one is an error. */
    const char *unix_path;
    uint32_t unix_mode; /* of the socket file, e.g. 0666: SO_PEERCRED tells who is calling */
    const char *host;   /* TCP: address to bind, e.g. "127.0.0.1" or "::1" */
    uint16_t port;      /* 0: any free one, see http_port */
    const char *tls_cert, *tls_key; /* PEM text, both or neither */
    /* Addresses and networks whose X-Forwarded-For and X-Forwarded-Proto count; NULL: nobody's. */
    const char *trusted_proxies;
    size_t body_max;          /* bytes; more is 413 */
    uint32_t connections_max; /* 0: 1024; one peer may have as many as are free, so half */
    uint32_t timeout_s; /* 0: 30; for a request to arrive (a large body has longer), and idle */
    uint32_t rate_per_s, rate_burst; /* of one peer address or uid; 0: no limit */
    size_t stream_queue_max; /* bytes that may wait for a slow reader of a stream; 0: 1 MiB */
    http_handler_fn *handler;
    void *ctx;
    struct log *log;
};

int http_check_proxies(struct str text, struct err *e) MUST_USE; /* "127.0.0.1, 10.0.0.0/8" */
struct http_server *http_new(struct loop *l, const struct http_config *c, struct err *e);

/* NULL ok; returns NULL.  Cuts what is open: streams get their on_close, requests that were not
 * answered are gone without a word, so stop first what would answer them.  Not from a handler. */
struct http_server *http_free(struct http_server *s);
void http_free_p(struct http_server **s);
uint16_t http_port(const struct http_server *s);
void http_quiesce(struct http_server *s); /* accepts nothing new, lets the rest finish */
size_t http_open_requests(const struct http_server *s); /* streams too */

/* ---- the request: valid until it was answered; strings are NUL-terminated ---- */

const char *http_method(const struct http_request *rq);
const char *http_path(const struct http_request *rq); /* without the query, percent-decoded */
const char *http_query(const struct http_request *rq, const char *key); /* NULL when absent */
bool http_query_next(const struct http_request *rq, size_t i, const char **key, const char **value);
const char *http_header(const struct http_request *rq, const char *name); /* NULL when absent */
const char *http_cookie(const struct http_request *rq, const char *name); /* NULL when absent */
struct str http_body(const struct http_request *rq);

/* The body as a form: application/x-www-form-urlencoded, at most HTTP_FORM_MAX bytes.  An error quotes nothing
 * of it: forms have secrets. */
#define HTTP_FORM_MAX 8192
int http_read_form(struct http_request *rq, struct err *e) MUST_USE;
const char *http_form(const struct http_request *rq, const char *key); /* NULL when absent */
bool http_form_next(const struct http_request *rq, size_t i, const char **key, const char **value);

const struct http_peer *http_peer(const struct http_request *rq);
struct arena *http_arena(struct http_request *rq); /* lives as long as the request */

/* ---- the answer: exactly one of these, once ---- */

/* The body is copied.  `type` NULL: no body.  Extra headers were added before with http_add_header,
 * which leaves out (and logs) what could not be one header: nothing can be smuggled in. */
void http_add_header(struct http_request *rq, const char *name, const char *value);
void http_reply(struct http_request *rq, int status, const char *type, struct str body);

/* application/problem+json from the error: code, message, hint, and `field`, or the error's own. */
void http_reply_error(struct http_request *rq, const struct err *err, const char *field);

/* The same under another status, e.g. 401 or 405. */
void http_reply_status(struct http_request *rq, int status, const struct err *err,
                       const char *field);

/* A reply that goes on (SSE, a log that is followed).  `on_close` runs once, when the client went
 * away or was too slow, and never inside a write; after it, and after http_stream_end, the request
 * is gone.  A client that only stops sending counts as gone. */
void http_stream_begin(struct http_request *rq, int status, const char *type, loop_fn *on_close,
                       void *ctx);
bool http_stream_write(struct http_request *rq, struct str bytes); /* false: too slow, being cut */
size_t http_stream_queued(const struct http_request *rq);

/* `fn` gets the stream's ctx whenever what was queued is nearly sent.  It must not write: the library
 * is at work. */
void http_stream_on_room(struct http_request *rq, loop_fn *fn);
void http_stream_end(struct http_request *rq);

/* ---- paths ---- */

#define HTTP_PARAMS_MAX 4
/* "/v1/jobs/:id/log" against a path; the params lie inside `path`. */
bool http_path_match(const char *pattern, struct str path, struct str param[HTTP_PARAMS_MAX],
                     size_t *out_n);

#endif
