/* A terminal on a task: bytes are copied between the upgraded connection and the task's socket.
 * Only the first frame is looked at: it must be one that a user may send. */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/state.h"
#include "sys/file.h"
#include "wire/stream.h"

#define BRIDGES_MAX 1024
#define PIPE_BYTES (256u << 10)

/* One direction. */
struct flow {
    char *at;
    size_t from, n;
    bool eof;
};

struct bridge {
    struct api *api;
    struct http_upgrade *up;
    int fd[2]; /* client, task */
    struct loop_watch *watch[2];
    struct flow flow[2]; /* flow[i] was read from fd[i] and goes to the other */
    bool opened;         /* the first frame was seen */
    struct task_id task;
    struct bridge *next;
};

static void bridge_free(struct bridge *b)
{
    struct bridge **at = &b->api->bridges;
    while (*at && *at != b)
        at = &(*at)->next;
    if (*at)
        *at = b->next;
    for (int i = 0; i < 2; i++) {
        loop_unwatch(b->watch[i]);
        free(b->flow[i].at);
    }
    file_close_p(&b->fd[1]);
    if (b->up)
        http_upgrade_close(b->up);
    free(b);
}

void bridges_free(struct api *a)
{
    while (a->bridges)
        bridge_free(a->bridges);
}

static void say_error(struct bridge *b, const char *text)
{
    AUTO(buf_free) struct buf frame = BUF(4096);
    stream_put_error(&frame, text);
    ssize_t n = send(b->fd[0], frame.p, frame.n, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)n; /* it is closed next */
}

/* 1: it may pass; 0: more bytes are needed; -1: not allowed. */
static int check_first(struct bridge *b)
{
    const struct flow *f = &b->flow[0];
    if (b->opened)
        return 1;
    if (f->n == 0)
        return 0;
    unsigned char type = (unsigned char)f->at[f->from];
    if (type != STREAM_ATTACH && type != STREAM_EXEC)
        return -1;
    b->opened = true;
    return 1;
}

static bool fill(struct bridge *b, int i)
{
    struct flow *f = &b->flow[i];
    while (!f->eof && f->n < PIPE_BYTES) {
        if (f->from) {
            memmove(f->at, f->at + f->from, f->n);
            f->from = 0;
        }
        ssize_t n = read(b->fd[i], f->at + f->n, PIPE_BYTES - f->n);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR;
        if (n == 0)
            f->eof = true;
        f->n += (size_t)n;
    }
    return true;
}

static bool drain(struct bridge *b, int i)
{
    struct flow *f = &b->flow[i];
    while (f->n) {
        ssize_t n = send(b->fd[1 - i], f->at + f->from, f->n, MSG_NOSIGNAL);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR;
        f->from += (size_t)n;
        f->n -= (size_t)n;
    }
    f->from = 0;
    return true;
}

static bool rewatch(struct bridge *b)
{
    struct err e;
    for (int i = 0; i < 2; i++) {
        unsigned want = (!b->flow[i].eof && b->flow[i].n < PIPE_BYTES ? LOOP_READ : 0u) |
                        (b->flow[1 - i].n ? LOOP_WRITE : 0u);
        if (loop_fd_set(b->watch[i], want, &e) < 0)
            return false;
    }
    return true;
}

static void on_ready(void *ctx, unsigned events)
{
    struct bridge *b = ctx;
    (void)events;
    bool ok = fill(b, 0) && fill(b, 1);
    int first = check_first(b);
    if (first < 0)
        say_error(b, "the first frame must be ATTACH or EXEC");
    if (first == 1)
        ok = ok && drain(b, 0) && drain(b, 1);
    /* The task's end is the end of it; so is the client's. */
    bool over = (b->flow[1].eof && b->flow[1].n == 0) || b->flow[0].eof;
    if (!ok || first < 0 || over || !rewatch(b))
        bridge_free(b);
}

static void on_socket(void *ctx, struct http_upgrade *up, int fd, struct str early)
{
    struct bridge *b = ctx;
    struct err e;
    const struct engine *en = control_engine(b->api->config.control);
    if (fd < 0) { /* nothing came of it */
        free(b);
        return;
    }
    b->up = up;
    b->fd[0] = fd;
    b->next = b->api->bridges;
    b->api->bridges = b;
    b->fd[1] = en->ops->open_stream(en->self, b->task, &e);
    if (b->fd[1] < 0) {
        say_error(b, e.msg);
        bridge_free(b);
        return;
    }
    for (int i = 0; i < 2; i++) {
        fcntl(b->fd[i], F_SETFL, fcntl(b->fd[i], F_GETFL) | O_NONBLOCK);
        b->flow[i].at = xmalloc(PIPE_BYTES);
        b->watch[i] = loop_fd(b->api->config.loop, b->fd[i], on_ready, b, &e);
        if (!b->watch[i]) {
            bridge_free(b);
            return;
        }
    }
    size_t n = MIN(early.n, (size_t)PIPE_BYTES);
    memcpy(b->flow[0].at, early.p, n);
    b->flow[0].n = n;
    on_ready(b, 0);
}

int api_job_stream(struct call *c, struct err *e)
{
    const struct engine *en = control_engine(c->api->config.control);
    const char *upgrade = http_header(c->rq, "Upgrade");
    uint64_t id, replica = query_number(c, "replica", 0);
    struct task_id task;
    struct store_job j;
    size_t open = 0;
    if (read_id(c, &id, e) < 0 || find_job(c, id, true, &j, e) < 0)
        return -1;
    if (!upgrade || strcmp(upgrade, "nightshift-stream") != 0) {
        c->field = "Upgrade";
        return err_set(e, ERR_INVALID, "this needs the header Upgrade: nightshift-stream");
    }
    if (!en->caps[CAP_ATTACH] || !en->ops->open_stream)
        return err_set(e, ERR_UNAVAILABLE, "the %s engine cannot attach to jobs", en->ops->name);
    if (control_task(c->api->config.control, id, (uint32_t)replica, &task, e) < 0)
        return -1;
    for (struct bridge *b = c->api->bridges; b; b = b->next)
        open++;
    if (open >= BRIDGES_MAX)
        return err_set(e, ERR_UNAVAILABLE, "%zu terminals are open already", open);
    struct bridge *b = xcalloc(1, sizeof *b);
    *b = (struct bridge){ .api = c->api, .fd = { -1, -1 }, .task = task };
    http_upgrade(c->rq, "nightshift-stream", on_socket, b);
    return 0;
}
