/* watch - what is heard of a running task: its supervisor's frames, its child, its memory. */
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "keeper/life.h"
#include "sys/file.h"

#define FRAMES_AT_ONCE 64

void watch_close(struct task *t)
{
    t->ctl_watch = loop_unwatch(t->ctl_watch);
    file_close_p(&t->ctl);
    stream_decoder_clear(&t->decoder);
    t->decoder = (struct stream_decoder){ 0 };
}

static void on_frame(struct task *t, const struct stream_frame *f)
{
    struct err e;
    if (f->type == STREAM_STARTED)
        life_started(t, stream_get_started(f->payload));
    if (f->type == STREAM_EXIT)
        t->exit_seen = stream_get_exit(f->payload, &t->exit, &e) == 0;
}

/* true: more may come. */
static bool take_frames(struct task *t, struct str chunk)
{
    struct stream_frame f;
    struct err e;
    int rc;
    while ((rc = stream_decode(&t->decoder, &chunk, &f, &e)) > 0)
        on_frame(t, &f);
    if (rc < 0)
        log_event(t->env->log, LOG_WARN_, "task.bad_frame", "task=%s why=%s", t->name, e.msg);
    return rc == 0;
}

static void on_ctl(void *ctx, unsigned events)
{
    struct task *t = ctx;
    char piece[4096];
    (void)events;
    for (int i = 0; i < FRAMES_AT_ONCE; i++) {
        ssize_t n = read(t->ctl, piece, sizeof piece);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n > 0 && take_frames(t, (struct str){ piece, (size_t)n }))
            continue;
        watch_close(t);
        finish_begin(t);
        return;
    }
}

static int send_all(struct task *t, const struct buf *b)
{
    /* A few bytes into an empty socket: they fit, or the other side is in trouble. */
    return send(t->ctl, b->p, b->n, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)b->n ? 0 : -1;
}

int watch_connect(struct task *t, struct err *e)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    snprintf(at.sun_path, sizeof at.sun_path, "%.90s/ctl.sock", t->run);
    t->ctl = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    AUTO(buf_free) struct buf hello = BUF(64);
    stream_put(&hello, STREAM_WATCH, (struct str){ 0 });
    if (t->ctl < 0 || connect(t->ctl, (struct sockaddr *)&at, sizeof at) < 0 ||
        send_all(t, &hello) < 0) {
        err_set(e, ERR_UNAVAILABLE, "cannot reach the task's supervisor at '%s': %s", at.sun_path,
                strerror(errno));
        watch_close(t);
        return -1;
    }
    t->ctl_watch = loop_fd(t->env->loop, t->ctl, on_ctl, t, e);
    if (t->ctl_watch && loop_fd_set(t->ctl_watch, LOOP_READ, e) == 0)
        return 0;
    watch_close(t);
    return -1;
}

int watch_signal(struct task *t, int signo)
{
    AUTO(buf_free) struct buf frame = BUF(64);
    stream_put_signal(&frame, signo);
    return t->ctl < 0 ? -1 : send_all(t, &frame);
}

static void on_child(void *ctx, unsigned events)
{
    struct task *t = ctx;
    int status;
    (void)events;
    if (waitpid(t->child.pid, &status, WNOHANG) == 0)
        return;
    struct err e;
    t->child_watch = loop_unwatch(t->child_watch);
    file_close_p(&t->child.pidfd);
    if (t->failed.code == ERR_NONE && spawn_failure(t->spawn, &t->child, &e))
        t->failed = e;
    file_close_p(&t->child.report);
    t->child.pid = 0;
    /* crun only waits for the task, which goes on without it: the connection tells when it ends. */
    if (t->state == TASK_ENDING)
        finish_step(t);
    else if (t->ctl < 0)
        finish_begin(t);
}

void watch_child(struct task *t)
{
    struct err e;
    t->child_watch = loop_fd(t->env->loop, t->child.pidfd, on_child, t, &e);
    if (!t->child_watch || loop_fd_set(t->child_watch, LOOP_READ, &e) < 0)
        abort(); /* libuv has no other reason than want of memory */
}

/* Nobody is spared: a job that lost one of its processes to the lack of memory would go on in a
 * state its author never thought of. */
static void on_oom(void *ctx, unsigned events)
{
    struct task *t = ctx;
    uint64_t count;
    (void)events;
    if (read(t->oom_fd, &count, sizeof count) < 0)
        return;
    /* The event also comes when the group goes away. */
    if (t->state != TASK_STARTING && t->state != TASK_RUNNING)
        return;
    life_arm(t); /* the kernel tells before it kills: look at the count from the timer */
    t->oom_looks = 50;
    loop_timer_set(t->timer, 1, 0);
}

void watch_oom(struct task *t)
{
    struct err e;
    t->oom_fd = cgroup_watch_oom(t->env->cgroups, t->name);
    if (t->oom_fd < 0)
        return;
    t->oom_watch = loop_fd(t->env->loop, t->oom_fd, on_oom, t, &e);
    if (!t->oom_watch || loop_fd_set(t->oom_watch, LOOP_READ, &e) < 0)
        log_event(t->env->log, LOG_WARN_, "task.oom_unwatched", "task=%s why=%s", t->name, e.msg);
}
