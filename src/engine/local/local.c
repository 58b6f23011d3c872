#include "engine/local/local.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "engine/local/answer.h"
#include "engine/local/request.h"
#include "engine/local/saved.h"
#include "sys/file.h"
#include "sys/process.h"

#define RETRY_MS 10
#define RESTART_TRIES 100 /* a keeper that did not live long is not started again at once */
#define LONG_LIFE_NS INT64_C(1000000000)
#define OUT_MAX (256u << 20) /* waits for a keeper that does not read */
#define READ_BYTES 65536
#define PING_MS 2000 /* a keeper whose loop stands still keeps its connection: so it is asked */

struct local {
    struct local_config config;
    char *socket, *state, *run;
    int fd;
    struct loop_watch *watch, *retry;
    struct process *keeper; /* when we started it */
    unsigned tries;         /* to connect, since the last start of a keeper or connection */
    int64_t keeper_since_ns;
    struct buf in, out;
    size_t sent;
    bool caps[ENGINE_CAP_COUNT];
    enum keeper_mode mode;
    bool said_hello;
    struct engine_walls walls;
    bool gpus_known; /* the machine was told */
    bool away;       /* was told, and nothing else since */
    struct loop_watch *beat;
    bool pings;       /* the keeper answers them */
    bool asked;       /* and has one to answer */
    int64_t heard_ns; /* the last word of it */
    char *gpu_uuid[GPUS_PER_NODE_MAX];
    uint32_t gpus;
    struct saved *saved;
};

static void on_keeper_exit(void *ctx, const struct process_exit *how)
{
    struct local *l = ctx;
    log_event(l->config.log, LOG_WARN_, "keeper.exit", "code=%d signal=%d", how->code, how->signal);
    l->keeper = process_free(l->keeper);
    if (l->fd < 0 && clock_mono_ns() - l->keeper_since_ns > LONG_LIFE_NS)
        l->tries = 0;
}

static void start_keeper(struct local *l)
{
    struct err e;
    struct process_spec spec = { .argv = l->config.keeper_argv,
                                 .fd = { PROCESS_NO_FD, STDERR_FILENO, STDERR_FILENO },
                                 .new_group = true };
    if (!l->config.keeper_argv || l->keeper)
        return;
    l->keeper_since_ns = clock_mono_ns();
    l->keeper = process_spawn(l->config.loop, &spec, on_keeper_exit, l, &e);
    if (l->keeper)
        log_event(l->config.log, LOG_INFO_, "keeper.started", "pid=%d", process_pid(l->keeper));
    else
        log_event(l->config.log, LOG_ERROR_, "keeper.start", "why=%s", e.msg);
}

/* A keeper that dies closes its connections before the socket it listens on: the next connection may
 * end there too, without an answer.  That is no news. */
static void drop(struct local *l, const char *why)
{
    struct engine_event away = { .kind = ENGINE_AWAY };
    bool still = l->away;
    if (!still)
        log_event(l->config.log, LOG_WARN_, "keeper.away", "why=%s", why);
    l->walls = (struct engine_walls){ 0 };
    l->watch = loop_unwatch(l->watch);
    file_close_p(&l->fd);
    l->fd = -1;
    l->tries = 0;
    l->pings = l->asked = false;
    buf_truncate(&l->in, 0);
    buf_truncate(&l->out, 0);
    l->sent = 0;
    l->away = true;
    if (!still)
        l->config.sink(l->config.ctx, &away);
    loop_timer_set(l->retry, still ? RETRY_MS : 0, 0);
}

/* ---- in ---- */

static void remember_gpus(struct local *l, const struct engine_event *ev)
{
    for (uint32_t i = 0; i < l->gpus; i++)
        free(l->gpu_uuid[i]);
    l->gpus_known = true;
    l->gpus = ev->machine.node->gpus;
    for (uint32_t i = 0; i < l->gpus; i++)
        l->gpu_uuid[i] = xstrdup(ev->machine.gpu_uuid[i]);
}

static void on_line(struct local *l, struct str line)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct answer an;
    struct err e;
    if (answer_read(line, &a, &an, &e) < 0) {
        log_event(l->config.log, LOG_ERROR_, "keeper.line", "why=%s", e.msg);
        return;
    }
    l->heard_ns = clock_mono_ns();
    if (an.kind == KEEPER_EV_PONG) {
        l->asked = false;
        return;
    }
    if (an.kind == KEEPER_EV_HELLO) {
        l->pings = an.pings;
        memcpy(l->caps, an.caps, sizeof l->caps);
        l->mode = an.mode;
        l->said_hello = true;
        return;
    }
    if (an.kind == KEEPER_EV_LEFTOVER) {
        log_event(l->config.log, LOG_WARN_, "keeper.leftover", "what=%.*s", STR_ARG(an.text));
        return;
    }
    if (an.kind == KEEPER_EV_WALLS) {
        l->walls = an.walls;
        return;
    }
    if (an.kind == KEEPER_EV_NODE)
        remember_gpus(l, &an.event);
    l->away = false;
    l->config.sink(l->config.ctx, &an.event);
    if (an.kind == KEEPER_EV_NODE) /* what runs is told after the machine, and is known by then */
        saved_tell(l->saved);
}

/* Complete lines out of what has come; false when the connection was dropped meanwhile. */
static bool take_lines(struct local *l)
{
    struct str rest = buf_str(&l->in);
    const char *lf;
    int fd = l->fd;
    while (rest.n && (lf = memchr(rest.p, '\n', rest.n))) {
        struct str line = { rest.p, (size_t)(lf - rest.p) };
        rest = (struct str){ lf + 1, rest.n - line.n - 1 };
        on_line(l, line);
        if (l->fd != fd)
            return false;
    }
    if (rest.n >= KEEPER_LINE_MAX) {
        drop(l, "it sent a line without end");
        return false;
    }
    memmove(l->in.p, rest.p, rest.n);
    buf_truncate(&l->in, rest.n);
    return true;
}

static void on_readable(struct local *l)
{
    char part[READ_BYTES];
    for (;;) {
        ssize_t n = read(l->fd, part, sizeof part);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0) {
            drop(l, n == 0 ? "it closed the connection" : strerror(errno));
            return;
        }
        buf_add(&l->in, (struct str){ part, (size_t)n });
        if (!take_lines(l))
            return;
    }
}

/* ---- out ---- */

static void flush(struct local *l)
{
    struct err e;
    while (l->fd >= 0 && l->sent < l->out.n) {
        ssize_t n = send(l->fd, l->out.p + l->sent, l->out.n - l->sent, MSG_NOSIGNAL);
        if (n < 0)
            break; /* not now, or it is gone and reading will tell */
        l->sent += (size_t)n;
    }
    if (l->fd < 0)
        return;
    bool rest = l->sent < l->out.n;
    if (!rest) {
        buf_truncate(&l->out, 0);
        l->sent = 0;
    }
    if (loop_fd_set(l->watch, rest ? LOOP_READ | LOOP_WRITE : LOOP_READ, &e) < 0)
        drop(l, e.msg);
}

static int queue_line(struct local *l)
{
    if (l->out.full)
        drop(l, "it does not read what it is sent");
    else
        flush(l);
    return 0;
}

static void on_fd(void *ctx, unsigned events)
{
    struct local *l = ctx;
    if (events & LOOP_WRITE)
        flush(l);
    if (l->fd >= 0 && (events & LOOP_READ))
        on_readable(l);
}

/* ---- connecting ---- */

static int connect_unix(const char *path, int flags, struct err *e)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    if (strlen(path) >= sizeof to.sun_path)
        return err_set(e, ERR_INVALID, "the socket's path is too long: %s", path);
    memcpy(to.sun_path, path, strlen(path) + 1);
    AUTO(file_close_p) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof to) < 0)
        return err_set(e, ERR_UNAVAILABLE, "cannot connect to %s: %s", path, strerror(errno));
    int taken = fd;
    fd = -1;
    return taken;
}

static void try_connect(void *ctx)
{
    struct local *l = ctx;
    struct err e;
    if (l->fd >= 0)
        return;
    int fd = connect_unix(l->socket, SOCK_NONBLOCK, &e);
    if (fd < 0) {
        if (l->tries++ % RESTART_TRIES == 0)
            start_keeper(l); /* unless one is on its way */
        loop_timer_set(l->retry, RETRY_MS, 0);
        return;
    }
    l->watch = loop_fd(l->config.loop, fd, on_fd, l, &e);
    if (!l->watch) {
        log_event(l->config.log, LOG_ERROR_, "keeper.watch", "why=%s", e.msg);
        file_close_p(&fd);
        loop_timer_set(l->retry, RETRY_MS, 0);
        return;
    }
    l->fd = fd;
    l->tries = 0;
    request_simple(KEEPER_DO_SYNC, (struct task_id){ 0 }, &l->out);
    flush(l);
}

static void on_beat(void *ctx)
{
    struct local *l = ctx;
    if (l->fd < 0 || !l->pings || l->asked)
        return;
    l->asked = true;
    request_simple(KEEPER_DO_PING, (struct task_id){ 0 }, &l->out);
    flush(l);
}

static void connect_soon(struct local *l)
{
    loop_timer_set(l->retry, l->tries ? RETRY_MS : 0, 0);
}

/* ---- verbs: without a keeper they succeed, and are told again after READY ---- */

static int local_sync(void *self, struct err *e)
{
    struct local *l = self;
    (void)e;
    saved_tell_numbers(l->saved);
    if (l->fd < 0) {
        connect_soon(l);
        return 0;
    }
    if (l->gpus_known) /* the machine is told with a connection, and not again */
        saved_tell(l->saved);
    request_simple(KEEPER_DO_SYNC, (struct task_id){ 0 }, &l->out);
    return queue_line(l);
}

static int local_start(void *self, const struct engine_start *s, struct err *e)
{
    struct local *l = self;
    size_t before = l->out.n;
    struct request_site site = { .log_bytes = l->config.log_bytes,
                                 .scratch_mib = l->config.scratch_mib,
                                 .pids_max = l->config.pids_max,
                                 .gpu_uuid = (const char *const *)l->gpu_uuid,
                                 .gpus = l->gpus,
                                 .volumes_allow = l->config.volumes_allow,
                                 .volumes_deny = l->config.volumes_deny };
    if (l->fd < 0)
        return 0;
    request_start(s, &site, &l->out);
    if (l->out.n - before > KEEPER_LINE_MAX) {
        buf_truncate(&l->out, before);
        return err_set(e, ERR_TOO_LARGE, "its command and environment are too long: over 1 MiB");
    }
    saved_begin(l->saved, s);
    return queue_line(l);
}

static int local_stop(void *self, struct task_id t, int64_t grace_ms, enum task_end why,
                      struct err *e)
{
    struct local *l = self;
    (void)e;
    if (l->fd < 0)
        return 0;
    request_stop(t, grace_ms, why, &l->out);
    return queue_line(l);
}

static int local_signal(void *self, struct task_id t, int signo, struct err *e)
{
    struct local *l = self;
    (void)e;
    if (l->fd < 0)
        return 0;
    request_signal(t, signo, &l->out);
    return queue_line(l);
}

static int simple(struct local *l, enum keeper_verb v, struct task_id t)
{
    if (l->fd < 0)
        return 0;
    request_simple(v, t, &l->out);
    return queue_line(l);
}

static int local_pause(void *self, struct task_id t, struct err *e)
{
    (void)e;
    return simple(self, KEEPER_DO_PAUSE, t);
}

static int local_resume(void *self, struct task_id t, struct err *e)
{
    (void)e;
    return simple(self, KEEPER_DO_RESUME, t);
}

static int local_forget(void *self, struct task_id t, struct err *e)
{
    (void)e;
    return simple(self, KEEPER_DO_FORGET, t);
}

static int local_purge(void *self, struct task_id t, struct err *e)
{
    (void)e;
    return simple(self, KEEPER_DO_PURGE, t);
}

static int local_open_stream(void *self, struct task_id t, struct err *e)
{
    const struct local *l = self;
    char path[4096], text[64];
    snprintf(path, sizeof path, "%s/tasks/%s/ctl.sock", l->run, task_format(t, text));
    int fd = connect_unix(path, 0, e);
    return fd < 0 ? err_wrap(e, "task %s cannot be reached", text) : fd;
}

static const char *local_log_dir(void *self, struct task_id t, char *out, size_t n)
{
    const struct local *l = self;
    char text[64];
    snprintf(out, n, "%s/tasks/%s", l->state, task_format(t, text));
    return out;
}

static int64_t local_heard_ms(void *self)
{
    const struct local *l = self;
    return l->fd < 0 || !l->pings ? -1 : (clock_mono_ns() - l->heard_ns) / 1000000;
}

static void local_keep(void *self, uint64_t job)
{
    struct local *l = self;
    saved_keep(l->saved, job);
}

static void local_walls(void *self, struct engine_walls *out)
{
    const struct local *l = self;
    *out = l->walls;
}

static void local_free(void *self)
{
    struct local *l = self;
    loop_unwatch(l->beat);
    saved_free(l->saved);
    loop_unwatch(l->watch);
    loop_unwatch(l->retry);
    process_free(l->keeper); /* it goes on: jobs outlive us */
    file_close_p(&l->fd);
    buf_free(&l->in);
    buf_free(&l->out);
    for (uint32_t i = 0; i < l->gpus; i++)
        free(l->gpu_uuid[i]);
    free(l->socket);
    free(l->state);
    free(l->run);
    free(l);
}

static const struct engine_ops ops = {
    .name = "local",
    .sync = local_sync,
    .start = local_start,
    .stop = local_stop,
    .signal = local_signal,
    .pause = local_pause,
    .resume = local_resume,
    .forget = local_forget,
    .purge = local_purge,
    .open_stream = local_open_stream,
    .log_dir = local_log_dir,
    .heard_ms = local_heard_ms,
    .keep = local_keep,
    .walls = local_walls,
    .free = local_free,
};

struct engine engine_local_new(const struct local_config *c)
{
    struct local *l = xcalloc(1, sizeof *l);
    l->config = *c;
    l->socket = xstrdup(c->socket);
    l->state = xstrdup(c->state);
    l->run = xstrdup(c->run);
    l->fd = -1;
    l->in = BUF(2 * KEEPER_LINE_MAX);
    l->out = BUF(OUT_MAX);
    l->retry = loop_timer(c->loop, try_connect, l);
    l->beat = loop_timer(c->loop, on_beat, l);
    loop_timer_set(l->beat, PING_MS, PING_MS);
    l->saved = saved_new(&(struct saved_config){ c->state, c->log, c->clock, c->sink, c->ctx });
    return (struct engine){ .ops = &ops, .self = l, .caps = l->caps };
}

const char *engine_local_mode(const struct engine *en)
{
    const struct local *l = en->self;
    return en->ops == &ops && l->said_hello ? keeper_mode_name(l->mode) : "";
}

void engine_local_end(struct engine *en)
{
    struct local *l = en->self;
    struct ucred peer = { 0 };
    socklen_t n = sizeof peer;
    if (en->ops != &ops || !l->config.keeper_argv)
        return;
    if (l->keeper) {
        process_kill(l->keeper, SIGTERM);
    } else if (l->fd >= 0 && getsockopt(l->fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) == 0 &&
               peer.pid > 0) {
        kill(peer.pid, SIGTERM); /* an earlier daemon of ours started it */
    }
}
