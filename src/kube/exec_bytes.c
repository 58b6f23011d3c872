/* What goes in and out: the caller's socket on one side, the server's WebSocket on the other. */
#include <errno.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "base/json.h"
#include "kube/exec_state.h"
#include "sys/clock.h"

#define TURN_MAX 64 /* pieces, then others have the loop */
#define GREETING_MS 30000
#define TICK_MS 1000
#define PING_NS INT64_C(30000000000)
#define SILENT_NS INT64_C(120000000000)

enum channel {
    STDIN = 0,
    STDOUT = 1,
    STDERR = 2,
    STATUS = 3
};
#define CLOSE_CHANNEL "\xff" /* v5: the one it names is at its end */

/* ---- what comes from the server ---- */

static void say(struct kube_exec *x, enum kube_ws_kind kind, struct str head, struct str payload)
{
    uint8_t mask[4];
    if (getrandom(mask, sizeof mask, 0) != (ssize_t)sizeof mask)
        abort();
    kube_ws_write(&x->to_server, kind, head, payload, mask);
    if (x->to_server.full) { /* only a server that pings and does not read comes here */
        err_set(&x->why, ERR_UNAVAILABLE, "the API server asks more than it hears");
        exec_fail(x);
    }
}

static void take_data(struct kube_exec *x, struct str data)
{
    switch (x->channel) {
    case STDOUT: buf_add(&x->to_caller, data); return;
    case STDERR:
        buf_add(&x->complaints,
                (struct str){ data.p, MIN(data.n, KUBE_EXEC_STDERR_MAX - x->complaints.n) });
        return;
    case STATUS:
        buf_add(&x->status, data);
        x->has_status = x->has_status || data.n > 0;
        return;
    default: return;
    }
}

/* The first byte of a message is its channel, whichever of its frames that is in. */
static void take_message(struct kube_exec *x, const struct kube_ws_frame *f)
{
    struct str data = f->payload;
    if (f->kind != KUBE_WS_MORE)
        x->channel = -1;
    if (x->channel < 0 && data.n) {
        x->channel = (uint8_t)data.p[0];
        data = (struct str){ data.p + 1, data.n - 1 };
    }
    take_data(x, data);
    if (f->last)
        x->channel = -1;
}

static void take_frame(struct kube_exec *x, const struct kube_ws_frame *f)
{
    switch (f->kind) {
    case KUBE_WS_MORE:
    case KUBE_WS_TEXT:
    case KUBE_WS_BINARY: take_message(x, f); return;
    case KUBE_WS_PING: say(x, KUBE_WS_PONG, STR(""), f->payload); return;
    case KUBE_WS_PONG: return;
    case KUBE_WS_CLOSE: exec_conclude(x); return;
    }
}

static void take_frames(struct kube_exec *x)
{
    size_t at = 0, n = 0;
    int rc = 0;
    struct kube_ws_frame f;
    while (x->phase == EXEC_OPEN &&
           (rc = kube_ws_read((struct str){ x->in.p + at, x->in.n - at }, &f, &n, &x->why)) > 0) {
        at += n;
        take_frame(x, &f);
    }
    buf_drop_front(&x->in, at);
    if (rc < 0)
        exec_fail(x);
}

static void refused(struct kube_exec *x, const struct kube_ws_welcome *w)
{
    AUTO(json_free_p) struct json_doc *doc = NULL;
    struct kube_reply r = { .status = w->status };
    size_t n = MIN(w->body_n, x->in.n - w->head_n);
    r.body = (struct str){ x->in.p + w->head_n, n };
    if (exec_again(x, w->status))
        return;
    kube_reply_status(&r, x->client, &doc);
    x->why = r.err;
    exec_fail(x);
}

static void take_welcome(struct kube_exec *x, bool at_end)
{
    struct kube_ws_welcome w;
    int rc = kube_ws_welcome(buf_str(&x->in), &w, &x->why);
    if (rc == 0 && at_end)
        rc = err_set(&x->why, ERR_UNAVAILABLE, "the API server hung up without an answer");
    if (rc < 0)
        exec_fail(x);
    if (rc <= 0)
        return;
    if (w.status != 101) {
        if (at_end || x->in.n - w.head_n >= MIN(w.body_n, EXEC_STATUS_MAX))
            refused(x, &w);
        return;
    }
    x->v5 = str_is(w.protocol, "v5.channel.k8s.io");
    if (!x->v5 && !str_is(w.protocol, "v4.channel.k8s.io")) {
        err_set(&x->why, ERR_UNAVAILABLE, "the API server speaks neither v5 nor v4 of exec");
        exec_fail(x);
        return;
    }
    buf_drop_front(&x->in, w.head_n);
    x->phase = EXEC_OPEN;
    take_frames(x);
}

/* ---- bytes: four directions ---- */

static void far_ended(struct kube_exec *x, CURLcode rc)
{
    if (x->phase == EXEC_GREETING && rc == CURLE_OK) {
        take_welcome(x, true);
        return;
    }
    if (rc != CURLE_OK && !x->has_status) {
        kube_transfer_error(&x->t, x->client->config, rc, &x->why);
        exec_fail(x);
        return;
    }
    exec_conclude(x);
}

/* Until there is nothing more: what TLS has already decrypted no descriptor tells about.  false: there may be more. */
static bool hear(struct kube_exec *x)
{
    char piece[EXEC_PIECE];
    for (int i = 0; i < TURN_MAX; i++) {
        size_t n = 0;
        if (x->phase != EXEC_OPEN && x->phase != EXEC_GREETING)
            return true;
        if (x->to_caller.n >= EXEC_HELD_MAX)
            return false;
        CURLcode rc = curl_easy_recv(x->t.easy, piece, sizeof piece, &n);
        if (rc == CURLE_AGAIN)
            return true;
        if (rc != CURLE_OK || n == 0) {
            far_ended(x, rc);
            return true;
        }
        x->heard_ns = clock_mono_ns();
        buf_add(&x->in, (struct str){ piece, n });
        if (x->phase == EXEC_GREETING)
            take_welcome(x, false);
        else
            take_frames(x);
    }
    return false;
}

static void tell(struct kube_exec *x)
{
    while (x->pending_n || x->to_server.n) {
        size_t n = 0;
        if (!x->pending_n) {
            x->pending_n = MIN(x->to_server.n, sizeof x->pending);
            memcpy(x->pending, x->to_server.p, x->pending_n);
            buf_drop_front(&x->to_server, x->pending_n);
        }
        CURLcode rc = curl_easy_send(x->t.easy, x->pending, x->pending_n, &n);
        if (rc == CURLE_AGAIN)
            return;
        if (rc != CURLE_OK) { /* there may still be an answer to read */
            x->pending_n = 0;
            buf_truncate(&x->to_server, 0);
            return;
        }
        memmove(x->pending, x->pending + n, x->pending_n - n);
        x->pending_n -= n;
    }
}

/* To the caller.  When it has closed its end, nobody is interested any more. */
static void deliver(struct kube_exec *x)
{
    size_t at = 0;
    while (at < x->to_caller.n) {
        ssize_t n = send(x->fd, x->to_caller.p + at, x->to_caller.n - at, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            break;
        at += (size_t)n;
    }
    bool left = at < x->to_caller.n && errno != EAGAIN;
    buf_drop_front(&x->to_caller, at);
    if (left) {
        err_set(&x->why, ERR_UNAVAILABLE, "the command was left by its caller");
        exec_fail(x);
    }
}

static bool is_left(const struct kube_exec *x)
{
    struct pollfd p = { .fd = x->fd };
    return poll(&p, 1, 0) == 1 && p.revents & (POLLHUP | POLLERR);
}

static void input_over(struct kube_exec *x)
{
    char which = STDIN;
    x->input_ended = true;
    if (is_left(x)) {
        err_set(&x->why, ERR_UNAVAILABLE, "the command was left by its caller");
        exec_fail(x);
    } else if (x->v5 && !x->no_input) {
        say(x, KUBE_WS_BINARY, STR(CLOSE_CHANNEL), (struct str){ &which, 1 });
    }
}

/* From the caller. */
static bool fetch(struct kube_exec *x)
{
    char piece[EXEC_PIECE];
    for (int i = 0; i < TURN_MAX; i++) {
        if (x->phase != EXEC_OPEN || x->input_ended || x->to_server.n >= EXEC_HELD_MAX)
            return true;
        ssize_t n = recv(x->fd, piece, sizeof piece, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return true;
        if (n <= 0)
            input_over(x);
        else if (!x->no_input)
            say(x, KUBE_WS_BINARY, (struct str){ "\0", 1 }, (struct str){ piece, (size_t)n });
    }
    return false;
}

static void set_events(struct kube_exec *x, bool more)
{
    struct err e;
    bool backed_up = x->to_caller.n >= EXEC_HELD_MAX;
    unsigned near =
        (x->phase == EXEC_OPEN && !x->input_ended && x->to_server.n < EXEC_HELD_MAX ? LOOP_READ
                                                                                    : 0u) |
        (x->to_caller.n ? LOOP_WRITE : 0u);
    unsigned far =
        (backed_up ? 0u : LOOP_READ) | (x->pending_n || x->to_server.n ? LOOP_WRITE : 0u);
    if (loop_fd_set(x->near, near, &e) < 0 || (x->far && loop_fd_set(x->far, far, &e) < 0)) {
        x->why = e;
        exec_fail(x);
    }
    loop_timer_set(x->tick, more && !backed_up ? 0 : TICK_MS, 0);
}

/* All four ways; what the caller takes makes room for what TLS may hold. */
void exec_pump(struct kube_exec *x)
{
    bool all = true;
    for (int i = 0; i < 2 && x->phase == EXEC_OPEN; i++) {
        all = hear(x) && all;
        deliver(x);
    }
    if (x->phase == EXEC_GREETING)
        all = hear(x);
    if (x->phase == EXEC_OPEN)
        all = fetch(x) && all;
    if (x->phase == EXEC_GREETING || x->phase == EXEC_OPEN)
        tell(x);
    if (x->phase == EXEC_DRAINING)
        deliver(x);
    if (x->phase == EXEC_DRAINING && x->to_caller.n == 0)
        exec_over(x);
    if (x->phase == EXEC_GREETING || x->phase == EXEC_OPEN || x->phase == EXEC_DRAINING)
        set_events(x, !all);
}

/* Now and then: is anybody still there, on either side? */
void exec_tick(void *ctx)
{
    struct kube_exec *x = ctx;
    int64_t now = clock_mono_ns();
    bool reads = x->to_caller.n < EXEC_HELD_MAX;
    if (!reads)
        x->heard_ns = now;
    if (x->phase == EXEC_GREETING && now - x->began_ns > GREETING_MS * INT64_C(1000000)) {
        err_set(&x->why, ERR_UNAVAILABLE, "no answer from the API server to an exec");
        exec_fail(x);
    } else if (x->phase == EXEC_OPEN && now - x->heard_ns > SILENT_NS) {
        err_set(&x->why, ERR_UNAVAILABLE, "the API server is silent; the command may go on");
        exec_fail(x);
    } else if (x->input_ended && x->phase == EXEC_OPEN && is_left(x)) {
        input_over(x);
    } else if (x->phase == EXEC_OPEN && now - x->pinged_ns > PING_NS) {
        x->pinged_ns = now;
        say(x, KUBE_WS_PING, STR(""), STR(""));
    }
    exec_pump(x);
}
