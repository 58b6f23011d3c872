#include "init/sessions.h"

#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "init/procs.h"
#include "init/times.h"
#include "init/wait.h"

#define FIRST_FRAME_MS 10000
#define STALLED_MS 2000
#define HANGUP_MS 5000
#define FLUSH_MS 3000
#define MARK_BYTES (256u << 10)    /* queued for one client: stop reading for it */
#define DRAIN_MAX_BYTES (4u << 20) /* a full pipe and more; what comes later is somebody else's */

/* Where poll's entries lie. */
#define POLL_CLIENTS 1
#define POLL_EXECS (POLL_CLIENTS + SESSIONS_CLIENTS)

void sessions_begin(struct sessions *s, int listener, struct child *job, const struct ring *log)
{
    s->listener = listener;
    s->job = job;
    s->log = log;
    for (size_t i = 0; i < SESSIONS_CLIENTS; i++)
        s->client[i].fd = -1;
    for (size_t i = 0; i < SESSIONS_EXECS; i++)
        child_init(&s->exec[i].child);
}

/* The command that a client runs, or SESSIONS_EXECS. */
static size_t exec_index(const struct sessions *s, const struct client *c)
{
    size_t i = 0;
    while (i < SESSIONS_EXECS && s->exec[i].client != c)
        i++;
    return i;
}

static struct exec *exec_of(struct sessions *s, const struct client *c)
{
    size_t i = exec_index(s, c);
    return i < SESSIONS_EXECS ? &s->exec[i] : NULL;
}

static void exec_clear(struct exec *x)
{
    child_clear(&x->child);
    x->client = NULL;
    x->ended = false;
    x->kill_ms = 0;
    x->drained = 0;
}

/* Its client has gone: as when a terminal is closed. */
static void exec_hangup(struct exec *x, int64_t now_ms)
{
    pid_t pid = x->child.pid;
    bool ended = x->ended;
    exec_clear(x);
    if (ended)
        return;
    x->child.pid = pid;
    x->kill_ms = now_ms + HANGUP_MS;
    kill(-pid, SIGHUP);
    kill(-pid, SIGCONT);
}

static void drop(struct sessions *s, struct client *c, int64_t now_ms)
{
    struct exec *x = exec_of(s, c);
    if (x)
        exec_hangup(x, now_ms);
    client_close(c);
}

static void flush(struct sessions *s, struct client *c, int64_t now_ms)
{
    if (c->fd >= 0 && !client_flush(c, now_ms))
        drop(s, c, now_ms);
}

void sessions_signal_job(struct sessions *s, int signo)
{
    pid_t execs[SESSIONS_EXECS];
    size_t n = 0;
    for (size_t i = 0; i < SESSIONS_EXECS; i++)
        if (s->exec[i].child.pid > 0)
            execs[n++] = s->exec[i].child.pid;
    if (s->job->pid > 0)
        procs_signal(signo, s->job->pid, execs, n);
}

/* --- a command inside the task --- */

/* Does one of the given variables replace this one? */
static bool is_replaced(const char *variable, const char *const *by)
{
    size_t name = strcspn(variable, "=") + 1;
    for (; *by; by++)
        if (strncmp(*by, variable, name) == 0)
            return true;
    return false;
}

static const char *const *merged_env(const char *const *added, struct arena *a)
{
    size_t n = 0, out = 0;
    for (size_t i = 0; environ[i]; i++)
        n++;
    for (size_t i = 0; added[i]; i++)
        n++;
    const char **env = arena_array(a, const char *, n + 1);
    for (size_t i = 0; environ[i]; i++)
        if (!is_replaced(environ[i], added))
            env[out++] = environ[i];
    for (size_t i = 0; added[i]; i++)
        env[out++] = added[i];
    return env;
}

static int exec_begin(struct sessions *s, struct client *c, struct str payload, struct err *e)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct stream_exec want;
    struct exec *x = NULL;
    int why = 0;
    for (size_t i = 0; i < SESSIONS_EXECS && !x; i++)
        if (s->exec[i].child.pid == 0)
            x = &s->exec[i];
    if (!x)
        return err_set(e, ERR_QUOTA, "%u commands run inside this job already", SESSIONS_EXECS);
    if (stream_get_exec(payload, &a, &want, e) < 0)
        return -1;
    struct child_spec spec = {
        .argv = want.argv,
        .env = merged_env(want.env, &a),
        .cwd = want.cwd,
        .tty = want.tty,
        .input = true,
        .rows = want.rows,
        .cols = want.cols,
    };
    c->role = CLIENT_EXEC;
    if (child_start(&x->child, &spec, &why, e) < 0) {
        client_send_error(c, e->msg);
        client_end(c, &(struct stream_exit){ .code = why == ENOENT ? 127 : 126 });
        return 0;
    }
    x->client = c;
    client_send_started(c, wall_us() / 1000);
    return 0;
}

/* Passes on what the command wrote, as long as its client takes it. */
static void exec_pump(struct sessions *s, struct exec *x, enum child_end end)
{
    enum stream_type type = end == CHILD_ERR ? STREAM_STDERR : STREAM_STDOUT;
    if (!x->client || queue_bytes(&x->client->out) >= MARK_BYTES)
        return;
    ssize_t n = child_read(&x->child, end, s->chunk, sizeof s->chunk);
    if (n > 0) {
        client_send(x->client, type, (struct str){ s->chunk, (size_t)n });
        x->drained += (size_t)n;
    }
    if (x->ended && (n < 0 || x->drained > DRAIN_MAX_BYTES))
        child_close(&x->child, end); /* what else holds it open is not the command any more */
}

/* A command that has ended is over when its output is read too. */
static void exec_finish(struct sessions *s, struct exec *x)
{
    for (enum child_end end = CHILD_OUT; end < CHILD_ENDS; end++)
        while (x->child.fd[end] >= 0 && queue_bytes(&x->client->out) < MARK_BYTES)
            exec_pump(s, x, end);
    if (x->child.fd[CHILD_OUT] >= 0 || x->child.fd[CHILD_ERR] >= 0)
        return;
    client_end(x->client, &x->how);
    exec_clear(x);
}

bool sessions_reaped(struct sessions *s, pid_t pid, const struct stream_exit *how)
{
    for (size_t i = 0; i < SESSIONS_EXECS; i++) {
        struct exec *x = &s->exec[i];
        if (x->child.pid != pid || x->ended)
            continue;
        x->ended = true;
        x->how = *how;
        child_release(&x->child);
        if (!x->client)
            exec_clear(x);
        return true;
    }
    return false;
}

/* --- frames --- */

static size_t users(const struct sessions *s)
{
    size_t n = 0;
    for (size_t i = 0; i < SESSIONS_CLIENTS; i++)
        n += s->client[i].fd >= 0 && s->client[i].role >= CLIENT_ATTACH;
    return n;
}

static void tell_end(struct sessions *s, struct client *c)
{
    if (s->why_not)
        client_send_error(c, s->why_not);
    client_end(c, &s->how);
}

/* Watchers and the attached learn when the job began, and how it ended if it has. */
static void welcome(struct sessions *s, struct client *c, enum client_role role)
{
    struct joblog_place end = { s->log->number, s->log->size };
    c->role = role;
    if (role == CLIENT_ATTACH)
        client_send_logged(c, &end);
    client_send_started(c, s->started_ms);
    if (s->ended)
        tell_end(s, c);
}

static int on_signal(struct sessions *s, struct client *c, struct str payload, struct err *e)
{
    int signo;
    struct exec *x = exec_of(s, c);
    if (stream_get_signal(payload, &signo, e) < 0)
        return -1;
    if (!x)
        sessions_signal_job(s, signo);
    else if (!x->ended)
        kill(-x->child.pid, signo);
    return 0;
}

static int on_first(struct sessions *s, struct client *c, const struct stream_frame *f,
                    struct err *e)
{
    if (f->type == STREAM_WATCH) {
        welcome(s, c, CLIENT_WATCH);
        return 0;
    }
    if (f->type == STREAM_SIGNAL) {
        c->closing = true;
        return on_signal(s, c, f->payload, e);
    }
    if (f->type != STREAM_ATTACH && f->type != STREAM_EXEC)
        return err_set(e, ERR_INVALID, "a connection cannot begin with a %s frame",
                       stream_type_name(f->type));
    if (users(s) >= SESSIONS_USERS_MAX)
        return err_set(e, ERR_QUOTA, "%u terminals are connected to this job already",
                       SESSIONS_USERS_MAX);
    if (f->type == STREAM_EXEC && s->ended)
        return err_set(e, ERR_CONFLICT, "the job has ended");
    if (f->type == STREAM_EXEC)
        return exec_begin(s, c, f->payload, e);
    welcome(s, c, CLIENT_ATTACH);
    return 0;
}

/* Whose terminal a client is; NULL: nobody's, or it has ended. */
static struct child *program_of(struct sessions *s, const struct client *c)
{
    struct exec *x = exec_of(s, c);
    return x ? &x->child : c->role == CLIENT_ATTACH ? s->job : NULL;
}

static int on_frame(struct sessions *s, struct client *c, const struct stream_frame *f,
                    struct err *e)
{
    struct child *program = program_of(s, c);
    uint16_t rows, cols;
    if (c->role == CLIENT_NEW)
        return on_first(s, c, f, e);
    if (f->type == STREAM_SIGNAL)
        return on_signal(s, c, f->payload, e);
    if (c->role == CLIENT_WATCH || (f->type != STREAM_STDIN && f->type != STREAM_RESIZE))
        return err_set(e, ERR_INVALID, "a %s frame has no place here", stream_type_name(f->type));
    if (program && f->type == STREAM_STDIN)
        child_input(program, f->payload);
    if (program && f->type == STREAM_RESIZE) {
        stream_get_resize(f->payload, &rows, &cols);
        child_resize(program, rows, cols);
    }
    return 0;
}

static bool takes_input(const struct sessions *s, const struct client *c)
{
    size_t i = exec_index(s, c);
    const struct child *program = i < SESSIONS_EXECS ? &s->exec[i].child : s->job;
    return !c->closing && !(c->role >= CLIENT_ATTACH && child_input_full(program));
}

static void on_readable(struct sessions *s, struct client *c, int64_t now_ms)
{
    ssize_t n = recv(c->fd, s->chunk, sizeof s->chunk, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN)) {
        drop(s, c, now_ms);
        return;
    }
    /* Frames are copied out before the chunk is used again: an exec that has something to say
     * right away is read in the next round. */
    struct str chunk = { s->chunk, n > 0 ? (size_t)n : 0 };
    struct stream_frame f;
    struct err e = { 0 };
    int rc = 0;
    while (!c->closing && (rc = stream_decode(&c->in, &chunk, &f, &e)) > 0)
        if ((rc = on_frame(s, c, &f, &e)) < 0)
            break;
    if (rc < 0)
        client_refuse(c, e.msg);
    flush(s, c, now_ms);
}

static void on_connection(struct sessions *s, int64_t now_ms)
{
    int fd;
    while ((fd = accept4(s->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        struct client *c = NULL;
        struct client extra;
        for (size_t i = 0; i < SESSIONS_CLIENTS && !c; i++)
            if (s->client[i].fd < 0)
                c = &s->client[i];
        client_open(c ? c : &extra, fd, now_ms);
        if (c) {
            on_readable(s, c, now_ms); /* its first frame is often here already */
            continue;
        }
        client_refuse(&extra, "too many connections to this job");
        (void)!client_flush(&extra, now_ms);
        client_close(&extra);
    }
}

/* --- the loop's part --- */

void sessions_polls(const struct sessions *s, struct pollfd out[static SESSIONS_POLLS])
{
    out[0] = (struct pollfd){ s->listener, POLLIN, 0 };
    for (size_t i = 0; i < SESSIONS_CLIENTS; i++) {
        const struct client *c = &s->client[i];
        bool in = c->fd >= 0 && takes_input(s, c);
        bool waiting = c->fd >= 0 && queue_bytes(&c->out) > 0;
        out[POLL_CLIENTS + i] =
            (struct pollfd){ c->fd, (short)((in ? POLLIN : 0) | (waiting ? POLLOUT : 0)), 0 };
    }
    for (size_t i = 0; i < SESSIONS_EXECS; i++) {
        const struct exec *x = &s->exec[i];
        struct pollfd *p = &out[POLL_EXECS + CHILD_ENDS * i];
        bool room = x->client && queue_bytes(&x->client->out) < MARK_BYTES;
        p[CHILD_IN] = (struct pollfd){ child_input_fd(&x->child), POLLOUT, 0 };
        for (enum child_end end = CHILD_OUT; end < CHILD_ENDS; end++)
            p[end] = (struct pollfd){ room ? x->child.fd[end] : -1, POLLIN, 0 };
    }
}

/* When something is due for a client or a command; INT64_MAX: never. */
static int64_t client_due_ms(const struct sessions *s, const struct client *c)
{
    if (c->fd >= 0 && c->role == CLIENT_NEW)
        return c->moved_ms + FIRST_FRAME_MS;
    if (c->fd >= 0 && c->role == CLIENT_ATTACH && s->job->tty && queue_bytes(&c->out) >= MARK_BYTES)
        return c->moved_ms + STALLED_MS;
    return INT64_MAX;
}

static int64_t exec_due_ms(const struct exec *x)
{
    return x->kill_ms ? x->kill_ms : INT64_MAX;
}

int sessions_timeout_ms(const struct sessions *s, int64_t now_ms)
{
    int64_t due = INT64_MAX;
    for (size_t i = 0; i < SESSIONS_CLIENTS; i++)
        due = MIN(due, client_due_ms(s, &s->client[i]));
    for (size_t i = 0; i < SESSIONS_EXECS; i++)
        due = MIN(due, exec_due_ms(&s->exec[i]));
    if (due == INT64_MAX)
        return -1;
    return due <= now_ms ? 0 : (int)(due - now_ms);
}

static void tick(struct sessions *s, int64_t now_ms)
{
    for (size_t i = 0; i < SESSIONS_CLIENTS; i++)
        if (client_due_ms(s, &s->client[i]) <= now_ms)
            drop(s, &s->client[i], now_ms);
    for (size_t i = 0; i < SESSIONS_EXECS; i++) {
        struct exec *x = &s->exec[i];
        if (exec_due_ms(x) > now_ms)
            continue;
        x->kill_ms = 0;
        procs_kill_session(x->child.pid);
    }
}

static void client_polled(struct sessions *s, struct client *c, const struct pollfd *p,
                          int64_t now_ms)
{
    if (c->fd < 0 || c->fd != p->fd)
        return;
    if (p->revents & POLLOUT)
        flush(s, c, now_ms);
    if (c->fd >= 0 && (p->revents & POLLIN))
        on_readable(s, c, now_ms);
    else if (c->fd >= 0 && (p->revents & (POLLHUP | POLLERR)))
        drop(s, c, now_ms);
}

static void exec_polled(struct sessions *s, struct exec *x, const struct pollfd *p)
{
    if (p[CHILD_IN].revents)
        child_input_flush(&x->child);
    for (enum child_end end = CHILD_OUT; end < CHILD_ENDS; end++)
        if (p[end].revents && p[end].fd == x->child.fd[end])
            exec_pump(s, x, end);
}

void sessions_polled(struct sessions *s, const struct pollfd p[static SESSIONS_POLLS],
                     int64_t now_ms)
{
    for (size_t i = 0; i < SESSIONS_CLIENTS; i++)
        client_polled(s, &s->client[i], &p[POLL_CLIENTS + i], now_ms);
    for (size_t i = 0; i < SESSIONS_EXECS; i++) {
        struct exec *x = &s->exec[i];
        exec_polled(s, x, &p[POLL_EXECS + CHILD_ENDS * i]);
        struct client *c = x->client;
        if (x->ended && c)
            exec_finish(s, x);
        if (c)
            flush(s, c, now_ms);
    }
    tick(s, now_ms);
    if (p[0].revents & POLLIN)
        on_connection(s, now_ms);
}

void sessions_output(struct sessions *s, enum stream_type type, struct str data, int64_t now_ms)
{
    for (size_t i = 0; i < SESSIONS_CLIENTS; i++) {
        struct client *c = &s->client[i];
        if (c->fd < 0 || c->role != CLIENT_ATTACH)
            continue;
        client_send(c, type, data);
        flush(s, c, now_ms);
    }
}

bool sessions_job_may_write(const struct sessions *s)
{
    for (size_t i = 0; s->job->tty && i < SESSIONS_CLIENTS; i++) {
        const struct client *c = &s->client[i];
        if (c->fd >= 0 && c->role == CLIENT_ATTACH && queue_bytes(&c->out) >= MARK_BYTES)
            return false;
    }
    return true;
}

/* Is somebody left who has not heard all? */
static bool is_busy(const struct sessions *s)
{
    for (size_t i = 0; i < SESSIONS_CLIENTS; i++)
        if (s->client[i].fd >= 0 && s->client[i].role != CLIENT_NEW)
            return true;
    return false;
}

void sessions_end(struct sessions *s, const struct stream_exit *how, const char *why_not)
{
    int64_t now_ms = mono_ms(), until_ms = now_ms + FLUSH_MS;
    struct pollfd p[SESSIONS_POLLS];
    s->ended = true;
    s->how = *how;
    s->why_not = why_not;
    for (size_t i = 0; i < SESSIONS_CLIENTS; i++) {
        struct client *c = &s->client[i];
        c->lingers = s->linger;
        if (c->role == CLIENT_WATCH || c->role == CLIENT_ATTACH)
            tell_end(s, c);
        flush(s, c, now_ms);
    }
    on_connection(s, now_ms); /* a short job may be over before its watcher was let in */
    for (memset(p, 0, sizeof p); is_busy(s) && now_ms < until_ms; now_ms = mono_ms()) {
        sessions_polled(s, p, now_ms);
        sessions_polls(s, p);
        if (is_busy(s))
            wait_ready(p, SESSIONS_POLLS, (int)(until_ms - now_ms));
    }
    for (size_t i = 0; i < SESSIONS_CLIENTS; i++)
        client_close(&s->client[i]);
    for (size_t i = 0; i < SESSIONS_EXECS; i++)
        child_clear(&s->exec[i].child);
}
