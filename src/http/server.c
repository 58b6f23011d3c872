#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "http/listen.h"
#include "http/state.h"

/* Keys that nobody can open later (no static RSA), and ciphers that protect what they hide (no CBC). */
#define TLS_SUITES                                                                                 \
    "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-KX-ALL:+ECDHE-ECDSA:+ECDHE-RSA:-CIPHER-ALL:"      \
    "+AES-256-GCM:+CHACHA20-POLY1305:+AES-128-GCM:-MAC-ALL:+AEAD"
#define CONNECTIONS_MAX 1024
#define TIMEOUT_S 30
#define STREAM_QUEUE_MAX (1u << 20)

int64_t server_now_ms(void)
{
    return clock_mono_ns() / 1000000;
}

/* ---- the library's callbacks; its lists of arguments are longer than ours may be ---- */

#define ON_REQUEST_ARGS                                                                            \
    void *ctx, struct MHD_Connection *mhd, const char *url, const char *method,                    \
        const char *version, const char *upload, size_t *upload_bytes, void **rq_ctx

static enum MHD_Result on_request(ON_REQUEST_ARGS)
{
    (void)ctx;
    (void)mhd;
    (void)url;
    struct http_request *rq = *rq_ctx;
    struct str bytes = { upload, *upload_bytes };
    if (rq->phase == PHASE_HEAD) {
        rq->method = method;
        rq->http11 = strcmp(version, "HTTP/1.1") == 0;
    }
    *upload_bytes = 0;
    return request_step(rq, bytes);
}

static void on_completed(void *ctx, struct MHD_Connection *mhd, void **rq_ctx,
                         enum MHD_RequestTerminationCode how)
{
    (void)ctx;
    (void)mhd;
    (void)how;
    struct http_request *rq = *rq_ctx;
    *rq_ctx = NULL;
    if (rq)
        request_end(rq);
}

static void on_connection(void *ctx, struct MHD_Connection *mhd, void **conn_ctx,
                          enum MHD_ConnectionNotificationCode what)
{
    switch (what) {
    case MHD_CONNECTION_NOTIFY_STARTED: *conn_ctx = conn_begin(ctx, mhd); break;
    case MHD_CONNECTION_NOTIFY_CLOSED: *conn_ctx = conn_free(*conn_ctx); break;
    }
}

/* Decoding is ours (target.h): the library's leaves what is wrong as it is. */
static size_t leave_escaped(void *ctx, struct MHD_Connection *mhd, char *text)
{
    (void)ctx;
    (void)mhd;
    return strlen(text);
}

static void PRINTF_LIKE(2, 0) on_library_says(void *ctx, const char *fmt, va_list ap)
{
    struct http_server *s = ctx;
    vsnprintf(s->mhd_says, sizeof s->mhd_says, fmt, ap);
    s->mhd_says[strcspn(s->mhd_says, "\n")] = '\0';
    log_event(s->config.log, LOG_DEBUG_, "http.library", "says=%s", s->mhd_says);
}

/* ---- the loop ---- */

static void turn(void *ctx)
{
    struct http_server *s = ctx;
    MHD_UNSIGNED_LONG_LONG wait_ms;
    s->wanted = false;
    MHD_run(s->mhd);
    if (s->wanted)
        loop_timer_set(s->mhd_timer, 0, 0);
    else if (MHD_get_timeout(s->mhd, &wait_ms) == MHD_YES)
        loop_timer_set(s->mhd_timer, wait_ms, 0);
    else
        loop_timer_clear(s->mhd_timer);
}

/* The library does not count a connection that was resumed as a reason to run. */
void server_wake(struct http_server *s)
{
    if (!s->wanted && !s->stopping)
        loop_timer_set(s->mhd_timer, 0, 0);
    s->wanted = true;
}

static void on_ready(void *ctx, unsigned events)
{
    (void)events;
    turn(ctx);
}

static void on_caller(void *ctx, unsigned events)
{
    (void)events;
    conn_accept(ctx);
}

static void on_listen_again(void *ctx)
{
    struct http_server *s = ctx;
    struct err e;
    if (s->listen_watch && loop_fd_set(s->listen_watch, LOOP_READ, &e) < 0)
        log_event(s->config.log, LOG_ERROR_, "http.listen", "why=%s", e.msg);
}

static void on_receive_timer(void *ctx)
{
    conn_receive_check(ctx);
}

static struct loop_watch *watch_fd(struct http_server *s, int fd, loop_fd_fn *fn, struct err *e)
{
    struct loop_watch *w = loop_fd(s->loop, fd, fn, s, e);
    return !w || loop_fd_set(w, LOOP_READ, e) == 0 ? w : loop_unwatch(w);
}

/* ---- starting and stopping ---- */

static int listen_begin(struct http_server *s, struct err *e)
{
    const struct http_config *c = &s->config;
    if (c->unix_path) {
        s->listen_fd = listen_unix(c->unix_path, c->unix_mode, &s->unix_file, e);
        if (s->listen_fd >= 0)
            s->unix_path = xstrdup(c->unix_path);
    } else {
        s->listen_fd = listen_tcp(c->host, c->port, &s->port, e);
    }
    return s->listen_fd < 0 ? -1 : 0;
}

static int tls_check(const struct http_config *c, struct err *e)
{
    if (!c->tls_cert != !c->tls_key)
        return err_set(e, ERR_INVALID,
                       "a TLS certificate needs its key, and a key its certificate");
    if (!c->tls_cert)
        return 0;
    if (MHD_is_feature_supported(MHD_FEATURE_TLS) != MHD_YES)
        return err_set(e, ERR_UNAVAILABLE, "this machine's libmicrohttpd was built without TLS");
    if (!strstr(c->tls_cert, "-----BEGIN CERTIFICATE-----"))
        return err_set(e, ERR_INVALID,
                       "the TLS certificate is not PEM: no BEGIN CERTIFICATE in it");
    if (!strstr(c->tls_key, "PRIVATE KEY-----"))
        return err_set(e, ERR_INVALID, "the TLS key is not PEM: no BEGIN PRIVATE KEY in it");
    return 0;
}

static int library_begin(struct http_server *s, struct err *e)
{
    const struct http_config *c = &s->config;
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET |
                     MHD_USE_ERROR_LOG | (unsigned)(s->tls ? MHD_USE_TLS : 0);
    const struct MHD_OptionItem options[] = {
        /* Our own limits come first; what is left over here is never reached. */
        { MHD_OPTION_CONNECTION_LIMIT, (intptr_t)c->connections_max + ACCEPT_SLACK, NULL },
        { MHD_OPTION_CONNECTION_MEMORY_LIMIT, POOL_BYTES, NULL },
        /* Without a sign of life; this is for what is being sent, receiving is watched by us. */
        { MHD_OPTION_CONNECTION_TIMEOUT, (intptr_t)c->timeout_s * 2, NULL },
        { MHD_OPTION_STRICT_FOR_CLIENT, 1, NULL },
        { MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)on_completed, s },
        { MHD_OPTION_NOTIFY_CONNECTION, (intptr_t)on_connection, s },
        { MHD_OPTION_URI_LOG_CALLBACK, (intptr_t)request_begin, s },
        { MHD_OPTION_UNESCAPE_CALLBACK, (intptr_t)leave_escaped, NULL },
        { s->tls ? MHD_OPTION_HTTPS_MEM_CERT : MHD_OPTION_END, 0, (void *)(uintptr_t)c->tls_cert },
        { MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)c->tls_key },
        { MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)TLS_SUITES },
        { MHD_OPTION_END, 0, NULL },
    };
    s->mhd = MHD_start_daemon(flags, 0, NULL, NULL, on_request, s, MHD_OPTION_EXTERNAL_LOGGER,
                              on_library_says, s, MHD_OPTION_ARRAY, options, MHD_OPTION_END);
    if (s->mhd)
        return 0;
    if (!s->tls)
        return err_set(e, ERR_UNAVAILABLE, "cannot start the HTTP server: %s", s->mhd_says);
    err_set(e, ERR_INVALID, "the TLS certificate and key are refused: %s", s->mhd_says);
    return err_hint(e, "see that both are whole PEM files and belong together");
}

static int watches_begin(struct http_server *s, struct err *e)
{
    int fd = MHD_get_daemon_info(s->mhd, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    s->mhd_timer = loop_timer(s->loop, turn, s);
    s->receive_timer = loop_timer(s->loop, on_receive_timer, s);
    s->listen_again = loop_timer(s->loop, on_listen_again, s);
    s->mhd_watch = watch_fd(s, fd, on_ready, e);
    s->listen_watch = watch_fd(s, s->listen_fd, on_caller, e);
    if (!s->mhd_watch || !s->listen_watch)
        return -1;
    turn(s);
    return 0;
}

int http_check_proxies(struct str text, struct err *e)
{
    struct net_list unused;
    return net_list_parse(text, &unused, e);
}

struct http_server *http_new(struct loop *l, const struct http_config *c, struct err *e)
{
    AUTO(http_free_p) struct http_server *s = xcalloc(1, sizeof *s);
    s->loop = l;
    s->config = *c;
    s->config.connections_max = c->connections_max ? c->connections_max : CONNECTIONS_MAX;
    s->config.timeout_s = c->timeout_s ? c->timeout_s : TIMEOUT_S;
    s->config.stream_queue_max = c->stream_queue_max ? c->stream_queue_max : STREAM_QUEUE_MAX;
    s->per_peer_max = (s->config.connections_max + 1) / 2;
    s->tls = c->tls_cert != NULL;
    s->listen_fd = s->gone_fd = -1;
    if (c->rate_per_s)
        s->rate = rate_new(c->rate_per_s, c->rate_burst, RATE_PEERS);
    if (c->trusted_proxies && net_list_parse(str_of(c->trusted_proxies), &s->trusted, e) < 0)
        return NULL;
    if (tls_check(c, e) < 0 || library_begin(s, e) < 0 || listen_begin(s, e) < 0 ||
        stream_watch_begin(s, e) < 0 || watches_begin(s, e) < 0)
        return NULL;
    return TAKE(s);
}

void http_quiesce(struct http_server *s)
{
    s->quiesced = true;
    s->listen_watch = loop_unwatch(s->listen_watch);
    if (s->unix_path)
        listen_unlink(s->unix_path, &s->unix_file);
    free(TAKE(s->unix_path));
    if (s->listen_fd >= 0)
        close(s->listen_fd);
    s->listen_fd = -1;
}

static void library_end(struct http_server *s)
{
    s->stopping = true;
    for (struct http_request *rq = s->requests; rq; rq = rq->next)
        request_resume(rq); /* the library will not stop with one that is suspended */
    if (s->mhd)
        MHD_stop_daemon(s->mhd);
    while (s->arriving) {
        struct conn *c = s->arriving;
        s->arriving = c->next;
        conn_free(c);
    }
}

struct http_server *http_free(struct http_server *s)
{
    if (!s)
        return NULL;
    http_quiesce(s);
    s->mhd_watch = loop_unwatch(s->mhd_watch);
    s->gone_watch = loop_unwatch(s->gone_watch);
    library_end(s);
    loop_unwatch(s->mhd_timer);
    loop_unwatch(s->receive_timer);
    loop_unwatch(s->listen_again);
    if (s->gone_fd >= 0)
        close(s->gone_fd);
    map_free(&s->by_peer);
    map_free(&s->held);
    rate_free(s->rate);
    free(s);
    return NULL;
}

void http_free_p(struct http_server **s)
{
    *s = http_free(*s);
}

uint16_t http_port(const struct http_server *s)
{
    return s->port;
}

size_t http_open_requests(const struct http_server *s)
{
    return s->requests_open;
}
