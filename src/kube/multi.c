#define CURL_DISABLE_DEPRECATION /* CURLOPT_PROTOCOLS: its successor is younger than Ubuntu 22.04 */
#include "kube/multi.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/url.h"

#define CONNECT_MS 10000L
#define ADDRESS_MAX (64u << 10)

/* A host that vanished is found out within half a minute, whether or not we have something to say. */
#define SILENT_S 15
#define PROBE_S 5
#define PROBES 3
#define UNSENT_MS 25000u

struct kube_multi {
    CURLM *curl;
    struct loop *loop;
    struct loop_watch *timer;
    loop_fn *on_turn;
    void *ctx;
    size_t count;
};

/* A connection that libcurl wants to be told about. */
struct line {
    struct kube_multi *multi;
    curl_socket_t fd;
    struct loop_watch *watch;
};

/* ---- the loop and libcurl ---- */

static void tell_done(struct kube_multi *m)
{
    CURLMsg *msg;
    int left;
    while ((msg = curl_multi_info_read(m->curl, &left))) {
        struct kube_transfer *t = NULL;
        CURLcode rc = msg->data.result; /* the message is gone once its handle is */
        if (msg->msg != CURLMSG_DONE ||
            curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &t) != CURLE_OK || !t)
            continue;
        t->done(t, rc);
    }
}

static void act(struct kube_multi *m, curl_socket_t fd, int events)
{
    int running;
    curl_multi_socket_action(m->curl, fd, events, &running);
    tell_done(m);
    m->on_turn(m->ctx);
}

static void on_line(void *ctx, unsigned events)
{
    struct line *line = ctx; /* may be gone after act */
    act(line->multi, line->fd,
        (events & LOOP_READ ? CURL_CSELECT_IN : 0) | (events & LOOP_WRITE ? CURL_CSELECT_OUT : 0));
}

static void on_timer(void *ctx)
{
    act(ctx, CURL_SOCKET_TIMEOUT, 0);
}

static int want_timer(CURLM *curl, long after_ms, void *ctx)
{
    (void)curl;
    struct kube_multi *m = ctx;
    if (after_ms < 0)
        loop_timer_clear(m->timer);
    else
        loop_timer_set(m->timer, (uint64_t)after_ms, 0);
    return 0;
}

static int want_line(CURL *easy, curl_socket_t fd, int what, void *ctx, void *known)
{
    (void)easy;
    struct kube_multi *m = ctx;
    struct line *line = known;
    struct err e;
    if (what == CURL_POLL_REMOVE) {
        if (line)
            loop_unwatch(line->watch);
        free(line);
        curl_multi_assign(m->curl, fd, NULL);
        return 0;
    }
    if (!line) {
        line = xcalloc(1, sizeof *line);
        *line = (struct line){ m, fd, NULL };
        line->watch = loop_fd(m->loop, fd, on_line, line, &e);
        curl_multi_assign(m->curl, fd, line);
    }
    unsigned events =
        (what & CURL_POLL_IN ? LOOP_READ : 0u) | (what & CURL_POLL_OUT ? LOOP_WRITE : 0u);
    /* Not watched, it dies of its time-out: there is no better answer to a kernel that refuses. */
    return line->watch && loop_fd_set(line->watch, events, &e) == 0 ? 0 : -1;
}

struct kube_multi *kube_multi_new(struct loop *l, loop_fn *on_turn, void *ctx, struct err *e)
{
    struct kube_multi *m = xcalloc(1, sizeof *m);
    m->loop = l;
    m->on_turn = on_turn;
    m->ctx = ctx;
    m->timer = loop_timer(l, on_timer, m);
    m->curl = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? curl_multi_init() : NULL;
    if (!m->curl) {
        err_set(e, ERR_UNAVAILABLE, "libcurl does not start");
        return kube_multi_free(m);
    }
    curl_multi_setopt(m->curl, CURLMOPT_SOCKETFUNCTION, want_line);
    curl_multi_setopt(m->curl, CURLMOPT_SOCKETDATA, m);
    curl_multi_setopt(m->curl, CURLMOPT_TIMERFUNCTION, want_timer);
    curl_multi_setopt(m->curl, CURLMOPT_TIMERDATA, m);
    curl_multi_setopt(m->curl, CURLMOPT_PIPELINING, (long)CURLPIPE_MULTIPLEX);
    return m;
}

struct kube_multi *kube_multi_free(struct kube_multi *m)
{
    if (!m)
        return NULL;
    if (m->curl) {
        curl_multi_cleanup(m->curl); /* takes its connections along, and so their watches */
        curl_global_cleanup();
    }
    loop_unwatch(m->timer);
    free(m);
    return NULL;
}

int kube_multi_add(struct kube_multi *m, struct kube_transfer *t, struct err *e)
{
    CURLMcode rc = curl_multi_add_handle(m->curl, t->easy);
    if (rc != CURLM_OK)
        return err_set(e, ERR_INTERNAL, "libcurl: %s", curl_multi_strerror(rc));
    t->multi = m;
    m->count++;
    return 0;
}

void kube_multi_remove(struct kube_transfer *t)
{
    if (!t->multi)
        return;
    curl_multi_remove_handle(t->multi->curl, t->easy);
    t->multi->count--;
    t->multi = NULL;
}

size_t kube_multi_count(const struct kube_multi *m)
{
    return m->count;
}

/* ---- one transfer ---- */

static int tune_socket(void *ctx, curl_socket_t fd, curlsocktype purpose)
{
    (void)ctx;
    static const struct {
        int level, option, value;
    } wanted[] = {
        { SOL_SOCKET, SO_KEEPALIVE, 1 },
        { IPPROTO_TCP, TCP_KEEPIDLE, SILENT_S },
        { IPPROTO_TCP, TCP_KEEPINTVL, PROBE_S },
        { IPPROTO_TCP, TCP_KEEPCNT, PROBES },
        { IPPROTO_TCP, TCP_USER_TIMEOUT, (int)UNSENT_MS },
    };
    /* A kernel that does not know one of them leaves the time-outs, which are enough. */
    for (size_t i = 0; purpose == CURLSOCKTYPE_IPCXN && i < ARRAY_LEN(wanted); i++)
        if (setsockopt(fd, wanted[i].level, wanted[i].option, &wanted[i].value, sizeof(int)) < 0)
            continue;
    return CURL_SOCKOPT_OK;
}

static void set_blob(CURL *easy, CURLoption option, struct str pem)
{
    struct curl_blob blob = { (void *)(uintptr_t)pem.p, pem.n, CURL_BLOB_COPY };
    if (pem.p)
        curl_easy_setopt(easy, option, &blob);
}

static void set_trust(CURL *easy, const struct kube_config *c, const struct kube_identity *who)
{
    set_blob(easy, CURLOPT_CAINFO_BLOB, c->ca.text);
    set_blob(easy, CURLOPT_SSLCERT_BLOB, who->cert);
    set_blob(easy, CURLOPT_SSLKEY_BLOB, who->key);
    curl_easy_setopt(easy, CURLOPT_SSLCERTTYPE, "PEM");
    curl_easy_setopt(easy, CURLOPT_SSLKEYTYPE, "PEM");
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, c->insecure ? 0L : 1L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, c->insecure ? 0L : 2L);
    curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
}

/* The name that the certificate must have is the host of the address; the connection goes to the server. */
static void set_route(struct kube_transfer *t, const struct url *u)
{
    AUTO(buf_free) struct buf to = BUF(URL_MAX);
    buf_printf(&to, "::%.*s:%u", STR_ARG(u->host), u->port);
    t->route = curl_slist_append(NULL, to.p);
    curl_easy_setopt(t->easy, CURLOPT_CONNECT_TO, t->route);
}

int kube_transfer_init(struct kube_transfer *t, const struct kube_config *config,
                       const struct kube_identity *who, struct err *e)
{
    struct url u;
    t->easy = curl_easy_init();
    if (!t->easy || url_parse(str_of(config->server), &u, e) < 0)
        return err_set(e, ERR_UNAVAILABLE, "libcurl does not start");
    curl_easy_setopt(t->easy, CURLOPT_PRIVATE, t);
    curl_easy_setopt(t->easy, CURLOPT_ERRORBUFFER, t->why);
    curl_easy_setopt(t->easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(t->easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
    curl_easy_setopt(t->easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(t->easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
    curl_easy_setopt(t->easy, CURLOPT_USERAGENT, "nightshift/" NS_VERSION);
    curl_easy_setopt(t->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    curl_easy_setopt(t->easy, CURLOPT_PIPEWAIT, 1L);
    curl_easy_setopt(t->easy, CURLOPT_SOCKOPTFUNCTION, tune_socket);
    if (config->proxy || url_is_loopback(&u)) /* otherwise what the environment says */
        curl_easy_setopt(t->easy, CURLOPT_PROXY, config->proxy ? config->proxy : "");
    if (config->tls_server_name)
        set_route(t, &u);
    set_trust(t->easy, config, who);
    return 0;
}

void kube_transfer_clear(struct kube_transfer *t)
{
    kube_multi_remove(t);
    curl_easy_cleanup(t->easy);
    curl_slist_free_all(t->route);
    t->easy = NULL;
    t->route = NULL;
}

static void add_server(const struct kube_config *config, struct buf *out)
{
    struct url u;
    struct err ignored;
    if (config->tls_server_name && url_parse(str_of(config->server), &u, &ignored) == 0)
        buf_printf(out, "http%s://%s:%u%.*s", u.https ? "s" : "", config->tls_server_name, u.port,
                   STR_ARG(u.path));
    else
        buf_addz(out, config->server);
}

int kube_transfer_url(struct kube_transfer *t, const struct kube_config *config, struct str path,
                      struct err *e)
{
    AUTO(buf_free) struct buf address = BUF(ADDRESS_MAX);
    add_server(config, &address);
    if (path.n == 0 || path.p[0] != '/')
        buf_addc(&address, '/');
    buf_add(&address, path);
    if (buf_check(&address, e) < 0)
        return err_wrap(e, "the path of a request");
    if (memchr(address.p, '\0', address.n))
        return err_set(e, ERR_INVALID, "the path of a request has a NUL in it");
    CURLcode rc = curl_easy_setopt(t->easy, CURLOPT_URL, address.p);
    return rc == CURLE_OK ? 0 : err_set(e, ERR_INTERNAL, "libcurl: %s", curl_easy_strerror(rc));
}

int kube_transfer_error(const struct kube_transfer *t, const struct kube_config *config,
                        CURLcode rc, struct err *e)
{
    bool trust = rc == CURLE_PEER_FAILED_VERIFICATION || rc == CURLE_SSL_CACERT_BADFILE ||
                 rc == CURLE_SSL_ISSUER_ERROR;
    bool ours = rc == CURLE_SSL_CERTPROBLEM;
    err_set(e, trust || ours ? ERR_DENIED : ERR_UNAVAILABLE,
            rc == CURLE_OPERATION_TIMEDOUT ? "no answer from the API server at %.100s: %s"
                                           : "cannot speak with the API server at %.100s: %s",
            config->server, t->why[0] ? t->why : curl_easy_strerror(rc));
    if (trust)
        return err_hint(e, "check certificate-authority in %.140s", config->source);
    if (ours)
        return err_hint(e, "check client-certificate and client-key in %.120s", config->source);
    return err_hint(e, "check that it runs, and the server named in %.120s", config->source);
}
