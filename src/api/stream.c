/* A terminal on a task, as two kinds of ordinary requests: one whose answer goes on, with the frames
 * that the task sends, and short ones that bring frames to it, numbered so that none is done twice.
 * Only the first frame is looked at: it must be one that a user may send. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/audit.h"
#include "api/search.h"
#include "sys/file.h"
#include "wire/stream.h"

#define BRIDGES_MAX 1024
#define PIECE_BYTES (64u << 10)
#define QUEUED_MAX (256u << 10) /* for the client: then the task waits */

struct bridge {
    struct api *api;
    struct http_request *down; /* its answer carries what the task sends */
    struct http_request *up;   /* brings frames that are not all with the task yet; or NULL */
    size_t up_sent;
    uint64_t up_next; /* the number that the next one must have */
    char key[STREAM_KEY_MAX + 1];
    char user[sizeof((struct identity *)0)->user];
    uint64_t job;
    char tenant[NAME_MAX_BYTES + 1]; /* the job's, when it is not the caller's own; else "" */
    int fd;                          /* the task */
    struct loop_watch *watch, *again;
    struct bridge *next;
};

static void up_refuse(struct bridge *b)
{
    struct err e;
    if (!b->up)
        return;
    err_set(&e, ERR_NOT_FOUND, "this stream has ended");
    http_reply_error(b->up, &e, NULL);
    b->up = NULL;
}

static void bridge_free(struct bridge *b)
{
    struct bridge **at = &b->api->bridges;
    while (*at && *at != b)
        at = &(*at)->next;
    if (*at)
        *at = b->next;
    up_refuse(b);
    loop_unwatch(b->watch);
    loop_unwatch(b->again);
    file_close_p(&b->fd);
    free(b);
}

static void bridge_end(struct bridge *b)
{
    struct http_request *down = b->down;
    bridge_free(b);
    http_stream_end(down);
}

void bridges_free(struct api *a)
{
    while (a->bridges)
        bridge_end(a->bridges);
}

void bridges_end_of(struct api *a, struct str user)
{
    for (struct bridge *b = a->bridges, *next; b; b = next) {
        next = b->next;
        if (str_is(user, b->user))
            bridge_end(b);
    }
}

void streams_end_of(struct api *a, struct str user)
{
    feeds_end_of(a, user);
    followers_end_of(a, user);
    bridges_end_of(a, user);
    searchings_end_of(a, user);
}

static void on_close(void *ctx)
{
    bridge_free(ctx);
}

/* From the task to the client, as much as it takes; false: that was the end. */
static bool send_down(struct bridge *b)
{
    char piece[PIECE_BYTES];
    while (http_stream_queued(b->down) < QUEUED_MAX) {
        ssize_t n = recv(b->fd, piece, sizeof piece, MSG_DONTWAIT);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR;
        if (n == 0)
            return false;
        if (!http_stream_write(b->down, (struct str){ piece, (size_t)n }))
            return true; /* cut off: on_close comes */
    }
    return true;
}

/* From the client to the task.  A task that is gone shows when it is read. */
static void send_up(struct bridge *b)
{
    if (!b->up)
        return;
    struct str body = http_body(b->up);
    while (b->up_sent < body.n) {
        ssize_t n =
            send(b->fd, body.p + b->up_sent, body.n - b->up_sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n < 0) {
            up_refuse(b);
            return;
        }
        b->up_sent += (size_t)n;
    }
    b->up_next++;
    http_reply(b->up, 204, NULL, (struct str){ "", 0 });
    b->up = NULL;
}

static void go_on(void *ctx)
{
    struct bridge *b = ctx;
    struct err e;
    if (!send_down(b)) {
        bridge_end(b);
        return;
    }
    send_up(b);
    bool room = http_stream_queued(b->down) < QUEUED_MAX;
    if (loop_fd_set(b->watch, (room ? LOOP_READ : 0u) | (b->up ? LOOP_WRITE : 0u), &e) < 0)
        bridge_end(b);
}

static void on_ready(void *ctx, unsigned events)
{
    (void)events;
    go_on(ctx);
}

static void on_room(void *ctx)
{
    loop_timer_set(((struct bridge *)ctx)->again, 0, 0);
}

/* ---- the requests ---- */

static struct bridge *bridge_find(const struct api *a, uint64_t job, struct str key)
{
    struct bridge *b = a->bridges;
    while (b && !(b->job == job && str_is(key, b->key)))
        b = b->next;
    return b;
}

static int check_new(struct call *c, uint64_t job, struct str key, struct err *e)
{
    if (!bridge_find(c->api, job, key))
        return 0;
    c->field = "key";
    err_set(e, ERR_CONFLICT, "query 'key': a stream with this key is open already");
    return err_hint(e, "make a random one for each stream");
}

static int bridge_begin(struct bridge *b, struct task_id task, struct err *e)
{
    const struct engine *en = control_engine(b->api->config.control);
    b->fd = en->ops->open_stream(en->self, task, e);
    if (b->fd < 0)
        return -1;
    b->watch = loop_fd(b->api->config.loop, b->fd, on_ready, b, e);
    b->again = loop_timer(b->api->config.loop, go_on, b);
    return b->watch ? loop_fd_set(b->watch, LOOP_READ, e) : -1;
}

int api_job_stream(struct call *c, struct err *e)
{
    const struct engine *en = control_engine(c->api->config.control);
    struct str key = query_text(c, "key");
    uint64_t id = c->job.fixed.id, replica = query_number(c, "replica", 0);
    struct task_id task;
    size_t open = 0;
    if (check_new(c, id, key, e) < 0)
        return -1;
    if (!en->caps[CAP_ATTACH] || !en->ops->open_stream)
        return err_set(e, ERR_UNAVAILABLE, "the %s engine cannot attach to jobs", en->ops->name);
    if (control_task(c->api->config.control, id, (uint32_t)replica, &task, e) < 0)
        return -1;
    for (struct bridge *b = c->api->bridges; b; b = b->next)
        open++;
    if (open >= BRIDGES_MAX)
        return err_set(e, ERR_UNAVAILABLE, "%zu terminals are open already", open);
    struct bridge *b = xcalloc(1, sizeof *b);
    *b = (struct bridge){ .api = c->api, .down = c->rq, .job = id, .fd = -1, .up_next = 1 };
    memcpy(b->key, key.p, key.n + 1);
    memcpy(b->user, c->who.user, sizeof b->user);
    if (audit_is_foreign(c, c->job.fixed.user))
        snprintf(b->tenant, sizeof b->tenant, "%.*s", STR_ARG(c->job.fixed.tenant));
    if (bridge_begin(b, task, e) < 0) {
        bridge_free(b);
        return -1;
    }
    b->next = c->api->bridges;
    c->api->bridges = b;
    http_stream_begin(c->rq, 200, "application/octet-stream", on_close, b);
    http_stream_on_room(c->rq, on_room);
    return 0;
}

static int check_first(const struct bridge *b, struct str body, struct err *e)
{
    if (b->up_next > 1 || (body.n && (body.p[0] == STREAM_ATTACH || body.p[0] == STREAM_EXEC)))
        return 0;
    return err_set(e, ERR_INVALID, "the first frame must be ATTACH or EXEC");
}

/* As with JSON: nothing that a form of another site can send. */
static int check_type(struct call *c, struct err *e)
{
    const char *type = http_header(c->rq, "Content-Type");
    if (type && strcmp(type, "application/octet-stream") == 0)
        return 0;
    c->field = "Content-Type";
    c->status = 415;
    err_set(e, ERR_INVALID, "header 'Content-Type': the body must be application/octet-stream");
    return err_hint(e, "send the header Content-Type: application/octet-stream");
}

static int check_number(struct call *c, const struct bridge *b, uint64_t n, struct err *e)
{
    if (!b->up && n <= b->up_next)
        return 0;
    c->field = "n";
    err_set(e, ERR_CONFLICT, "query 'n': frames come one request after the other");
    return err_hint(e, "the next is %llu", (unsigned long long)b->up_next);
}

int api_job_stream_send(struct call *c, struct err *e)
{
    uint64_t id, n = query_number(c, "n", 0);
    if (read_id(c, &id, e) < 0 || check_type(c, e) < 0)
        return -1;
    struct bridge *b = bridge_find(c->api, id, c->param[1]);
    if (!b || strcmp(b->user, c->who.user) != 0)
        return err_set(e, ERR_NOT_FOUND, "there is no such stream, or it has ended");
    if (check_number(c, b, n, e) < 0)
        return -1;
    if (n < b->up_next) { /* said again after a broken connection: it has been done */
        http_reply(c->rq, 204, NULL, (struct str){ "", 0 });
        return 0;
    }
    if (check_first(b, http_body(c->rq), e) < 0)
        return -1;
    if (b->up_next == 1 && b->tenant[0])
        api_audit(c, &(struct audit_change){ .what = http_body(c->rq).p[0] == STREAM_EXEC
                                                       ? AUDIT_JOB_EXEC
                                                       : AUDIT_JOB_ATTACH,
                                             .subject = audit_job_subject(c, id),
                                             .tenant = str_of(b->tenant) });
    b->up = c->rq;
    b->up_sent = 0;
    go_on(b);
    return 0;
}
