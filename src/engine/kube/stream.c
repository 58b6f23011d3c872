/* The way to a task's supervisor: a bridge that is run inside its pod, through the API server, and copies what
 * travels between a terminal and nightshift-init (wire/stream.h). */
#include <errno.h>
#include <unistd.h>

#include "engine/kube/state.h"
#include "kube/exec.h"
#include "sys/file.h"
#include "wire/stream.h"

static void on_bridge_end(void *ctx, int exit_code, struct str complaints, const struct err *why)
{
    struct kube *k = ctx;
    log_event(k->config.log, LOG_INFO_, "bridge.ended", "code=%d why=%s said=%.*s", exit_code,
              why ? why->msg : "", STR_ARG(complaints));
}

int stream_open(struct kube *k, const struct task *t, struct err *e)
{
    static const char *const argv[] = { POD_INIT, "--bridge", POD_TASK_DIR, NULL };
    if (t->gang) {
        err_set(e, ERR_UNAVAILABLE, "its pods were made by others, and have no supervisor of ours");
        return err_hint(e, "kubectl exec -n %s -it %s -- sh", t->space, t->pod);
    }
    struct kube_exec_request rq = {
        .ns = t->space, .pod = t->pod, .container = POD_CONTAINER, .argv = argv
    };
    return kube_exec(k->client, &rq, on_bridge_end, k, e);
}

/* A signal on its way: it has arrived when the other side closes. */
struct sent {
    int fd;
    struct loop_watch *watch;
};

static void on_answer(void *ctx, unsigned events)
{
    struct sent *s = ctx;
    char part[256];
    ssize_t n;
    (void)events;
    do
        n = read(s->fd, part, sizeof part);
    while (n > 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    loop_unwatch(s->watch);
    file_close_p(&s->fd);
    free(s);
}

int stream_signal(struct kube *k, const struct task *t, int signo, struct err *e)
{
    AUTO(buf_free) struct buf frame = BUF(64);
    AUTO(file_close_p) int fd = stream_open(k, t, e);
    if (fd < 0)
        return -1;
    stream_put_signal(&frame, signo);
    if (write(fd, frame.p, frame.n) != (ssize_t)frame.n)
        return err_set(e, ERR_UNAVAILABLE, "the signal could not be sent: %s", strerror(errno));
    struct sent *s = xcalloc(1, sizeof *s);
    s->fd = fd;
    s->watch = loop_fd(k->config.loop, fd, on_answer, s, e);
    if (!s->watch || loop_fd_set(s->watch, LOOP_READ, e) < 0) {
        loop_unwatch(s->watch);
        free(s);
        return -1;
    }
    fd = -1;
    return 0;
}
