#include "kube/exec.h"

#include <sys/socket.h>
#include <unistd.h>

#include "base/json.h"
#include "base/parse.h"
#include "base/url.h"
#include "kube/exec_state.h"
#include "sys/clock.h"
#include "sys/file.h"

#define PATH_MAX_BYTES ((size_t)512 << 10)
#define HELLO_MAX ((size_t)1 << 20)

/* ---- how it ends ---- */

void exec_over(struct kube_exec *x)
{
    if (x->phase == EXEC_OVER)
        return;
    x->phase = EXEC_OVER;
    kube_client_kick(x->client); /* told and freed there: we may be inside libcurl's multi */
}

void exec_fail(struct kube_exec *x)
{
    x->exit_code = -1;
    exec_over(x);
}

void exec_conclude(struct kube_exec *x)
{
    int code = -1;
    if (!x->has_status)
        err_set(&x->why, ERR_UNAVAILABLE, "the connection ended before the command did");
    else if (kube_exec_status(buf_str(&x->status), &code, &x->why) == 0 && code == 0)
        x->why = (struct err){ 0 };
    x->exit_code = code;
    x->phase = EXEC_DRAINING;
    x->far = loop_unwatch(x->far);
}

int kube_exec_status(struct str json, int *out_code, struct err *e)
{
    AUTO(json_free_p) struct json_doc *doc = json_read(json, e);
    struct str status = { 0 }, message = STR("no message"), code = { 0 };
    struct err ignored;
    uint64_t n;
    if (!doc || !json_is_object(json_root(doc)) ||
        json_need_str(json_root(doc), "status", 64, &status, e) < 0)
        return err_set(e, ERR_INVALID, "the API server's last word on the command is no Status");
    if (str_is(status, "Success")) {
        *out_code = 0;
        return 0;
    }
    if (json_get_str(json_root(doc), "message", EXEC_STATUS_MAX, &message, &ignored) < 0)
        message = STR("not understood");
    err_set(e, ERR_UNAVAILABLE, "%.*s", (int)MIN(message.n, (size_t)300), message.p);
    const struct json *causes = json_find(json_find(json_root(doc), "details"), "causes");
    if (!json_is_array(causes))
        return -1;
    for (const struct json *v = json_first(causes); v; v = json_next(causes, v)) {
        struct str reason = { 0 };
        if (json_is_object(v) && json_get_str(v, "reason", 64, &reason, &ignored) == 0 &&
            reason.p && str_is(reason, "ExitCode") &&
            json_get_str(v, "message", 64, &code, &ignored) == 0 && code.p &&
            parse_u64(code, 255, &n, &ignored) == 0) {
            *out_code = (int)n;
            return 0;
        }
    }
    return -1;
}

bool exec_again(struct kube_exec *x, int status)
{
    if (status != 401 || x->retried || !kube_credential_refused(x->client->credential, x->version))
        return false;
    x->retried = true;
    x->phase = EXEC_WAITING;
    x->far = loop_unwatch(x->far);
    buf_truncate(&x->in, 0);
    buf_truncate(&x->to_server, 0);
    x->pending_n = 0;
    kube_client_kick(x->client); /* a new connection is made there */
    return true;
}

static void exec_free(struct kube_exec *x)
{
    loop_unwatch(x->near);
    loop_unwatch(x->far);
    loop_unwatch(x->tick);
    kube_transfer_clear(&x->t);
    kube_multi_free(x->multi);
    file_close_p(&x->fd);
    buf_free(&x->in);
    buf_free(&x->to_caller);
    buf_free(&x->to_server);
    buf_free(&x->complaints);
    buf_free(&x->status);
    if (x->bearer)
        explicit_bzero(x->bearer, strlen(x->bearer));
    free(x->bearer);
    free(x->path);
    free(x);
}

/* ---- how it begins ---- */

static void on_near(void *ctx, unsigned events)
{
    (void)events;
    exec_pump(ctx);
}

static void add_hello(struct kube_exec *x)
{
    const struct kube_config *c = x->client->config;
    AUTO(buf_free) struct buf path = BUF(PATH_MAX_BYTES);
    AUTO(buf_free) struct buf host = BUF(URL_MAX);
    struct url u = { 0 };
    struct err ignored;
    if (url_parse(str_of(c->server), &u, &ignored) < 0)
        abort(); /* the config was read with the same function */
    buf_add(&path, u.path);
    buf_addz(&path, x->path);
    if (c->tls_server_name)
        buf_printf(&host, "%s:%u", c->tls_server_name, u.port);
    else
        buf_printf(&host, "%.*s:%u", STR_ARG(u.host), u.port);
    struct kube_ws_hello hello = { .host = buf_str(&host),
                                   .path = buf_str(&path),
                                   .protocols = "v5.channel.k8s.io, v4.channel.k8s.io",
                                   .bearer = x->bearer };
    kube_ws_hello(&x->to_server, &hello);
}

/* libcurl has connected, or has not. */
static void on_connected(struct kube_transfer *t, CURLcode rc)
{
    struct kube_exec *x = (struct kube_exec *)t;
    curl_socket_t fd = CURL_SOCKET_BAD;
    if (rc != CURLE_OK)
        kube_transfer_error(t, x->client->config, rc, &x->why);
    else if (curl_easy_getinfo(t->easy, CURLINFO_ACTIVESOCKET, &fd) != CURLE_OK || fd < 0)
        err_set(&x->why, ERR_UNAVAILABLE, "libcurl lost the connection to the API server");
    else
        x->far = loop_fd(x->client->loop, fd, on_near, x, &x->why);
    if (!x->far) {
        exec_fail(x);
        return;
    }
    x->phase = EXEC_GREETING;
    x->began_ns = x->heard_ns = x->pinged_ns = clock_mono_ns();
    add_hello(x);
    exec_pump(x);
}

static void on_turn(void *ctx)
{
    (void)ctx;
}

static int connect_(struct kube_exec *x, const struct kube_identity *who, struct err *e)
{
    struct kube_client *c = x->client;
    kube_transfer_clear(&x->t);
    x->multi = kube_multi_free(x->multi);
    x->t.done = on_connected;
    x->version = who->version;
    free(x->bearer);
    x->bearer = who->bearer ? xstrdup(who->bearer) : NULL;
    x->multi = kube_multi_new(c->loop, on_turn, x, e);
    if (!x->multi || kube_transfer_init(&x->t, c->config, who, e) < 0 ||
        kube_transfer_url(&x->t, c->config, STR("/"), e) < 0)
        return -1;
    curl_easy_setopt(x->t.easy, CURLOPT_CONNECT_ONLY, 1L);
    curl_easy_setopt(x->t.easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(x->t.easy, CURLOPT_PIPEWAIT, 0L);
    x->phase = EXEC_CONNECTING;
    return kube_multi_add(x->multi, &x->t, e);
}

static void end_now(struct kube_exec *x)
{
    bool fine = x->exit_code == 0 && x->why.code == ERR_NONE;
    kube_exec_fn *fn = x->on_end;
    void *ctx = x->ctx;
    struct buf complaints = x->complaints;
    struct err why = x->why;
    int code = x->exit_code;
    x->complaints = (struct buf){ 0 };
    TAILQ_REMOVE(&x->client->execs, x, link);
    exec_free(x); /* closes our end first: the caller has seen everything */
    fn(ctx, code, buf_str(&complaints), fine ? NULL : &why);
    buf_free(&complaints);
}

void kube_execs_pump(struct kube_client *c)
{
    struct kube_identity who;
    struct kube_exec *x, *next;
    /* Callbacks may start others, at the end of the list; none of them can end one. */
    for (x = TAILQ_FIRST(&c->execs); x; x = next) {
        enum kube_credential_state state = KUBE_CREDENTIAL_COMING;
        next = TAILQ_NEXT(x, link);
        if (x->phase == EXEC_WAITING)
            state = kube_credential_get(c->credential, &who, &x->why);
        if (state == KUBE_CREDENTIAL_FAILED ||
            (state == KUBE_CREDENTIAL_READY && connect_(x, &who, &x->why) < 0))
            exec_fail(x);
        if (x->phase == EXEC_OVER)
            end_now(x);
    }
}

void kube_execs_free(struct kube_client *c)
{
    struct kube_exec *x;
    while ((x = TAILQ_FIRST(&c->execs))) {
        TAILQ_REMOVE(&c->execs, x, link);
        exec_free(x);
    }
}

static void add_query(struct buf *out, const char *key, const char *value)
{
    buf_printf(out, "&%s=", key);
    url_encode(str_of(value), out);
}

static int make_path(const struct kube_exec_request *rq, struct buf *out, struct err *e)
{
    size_t n = 0;
    buf_addz(out, "/api/v1/namespaces/");
    url_encode(str_of(rq->ns), out);
    buf_addz(out, "/pods/");
    url_encode(str_of(rq->pod), out);
    buf_printf(out, "/exec?stdin=%s&stdout=true&stderr=%s&tty=%s", rq->no_input ? "false" : "true",
               rq->tty ? "false" : "true", rq->tty ? "true" : "false");
    if (rq->container)
        add_query(out, "container", rq->container);
    for (; rq->argv[n] && n < KUBE_EXEC_WORDS_MAX; n++)
        add_query(out, "command", rq->argv[n]);
    if (rq->argv[n] || n == 0)
        return err_set(e, ERR_INVALID, "a command has 1 to %d words", KUBE_EXEC_WORDS_MAX);
    return buf_check(out, e);
}

int kube_exec(struct kube_client *c, const struct kube_exec_request *rq, kube_exec_fn *on_end,
              void *ctx, struct err *e)
{
    AUTO(buf_free) struct buf path = BUF(PATH_MAX_BYTES / 2);
    AUTO(file_close_p) int theirs = -1;
    int ends[2];
    if (make_path(rq, &path, e) < 0)
        return -1;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
        return err_set(e, ERR_UNAVAILABLE, "cannot make a pair of sockets: %m");
    struct kube_exec *x = xcalloc(1, sizeof *x);
    theirs = ends[0];
    x->fd = ends[1];
    x->client = c;
    x->on_end = on_end;
    x->ctx = ctx;
    x->path = xstrdup(path.p);
    x->no_input = rq->no_input;
    x->channel = -1;
    x->in = BUF(KUBE_WS_PAYLOAD_MAX + KUBE_WS_HEAD_MAX + KUBE_WS_WELCOME_MAX + EXEC_PIECE);
    x->to_caller = BUF(2 * KUBE_WS_PAYLOAD_MAX + EXEC_HELD_MAX);
    x->to_server = BUF(HELLO_MAX);
    x->complaints = BUF(KUBE_EXEC_STDERR_MAX);
    x->status = BUF(EXEC_STATUS_MAX);
    x->tick = loop_timer(c->loop, exec_tick, x);
    x->near = loop_fd(c->loop, x->fd, on_near, x, e);
    if (!x->near) {
        exec_free(x);
        return -1;
    }
    TAILQ_INSERT_TAIL(&c->execs, x, link);
    kube_client_kick(c);
    int fd = theirs;
    theirs = -1;
    return fd;
}
