#include "sys/filewatch.h"

#include <errno.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "sys/file.h"

struct filewatch_one {
    struct filewatch *f;
    struct filewatch_one *next;
    int wd;
    bool hit;
    loop_fn *fn;
    void *ctx;
};

struct filewatch {
    int fd;
    struct loop_watch *watch;
    struct filewatch_one *list;
};

static struct filewatch_one *next_hit(struct filewatch *f)
{
    for (struct filewatch_one *o = f->list; o; o = o->next)
        if (o->hit)
            return o;
    return NULL;
}

static void on_events(void *ctx, unsigned events)
{
    struct filewatch *f = ctx;
    char part[16384] __attribute__((aligned(8)));
    ssize_t n;
    (void)events;
    while ((n = read(f->fd, part, sizeof part)) > 0)
        for (char *p = part; p < part + n;) {
            const struct inotify_event *ev = (const void *)p;
            for (struct filewatch_one *o = f->list; o; o = o->next)
                o->hit |= o->wd == ev->wd || (ev->mask & IN_Q_OVERFLOW);
            p += sizeof *ev + ev->len;
        }
    /* A callback may add and remove any of them, so look from the beginning each time. */
    for (struct filewatch_one *o; (o = next_hit(f));) {
        o->hit = false;
        o->fn(o->ctx);
    }
}

struct filewatch *filewatch_new(struct loop *l, struct err *e)
{
    struct filewatch *f = xcalloc(1, sizeof *f);
    f->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (f->fd >= 0)
        f->watch = loop_fd(l, f->fd, on_events, f, e);
    else
        err_set(e, ERR_UNAVAILABLE, "cannot watch files: %s", strerror(errno));
    if (!f->watch || loop_fd_set(f->watch, LOOP_READ, e) < 0)
        return filewatch_free(f);
    return f;
}

struct filewatch *filewatch_free(struct filewatch *f)
{
    if (!f)
        return NULL;
    for (struct filewatch_one *o = f->list, *next; o; o = next) {
        next = o->next;
        free(o);
    }
    loop_unwatch(f->watch);
    file_close_p(&f->fd);
    free(f);
    return NULL;
}

struct filewatch_one *filewatch_add(struct filewatch *f, const char *dir, loop_fn *fn, void *ctx,
                                    struct err *e)
{
    int wd = inotify_add_watch(f->fd, dir, IN_MODIFY | IN_CREATE | IN_MOVED_TO | IN_CLOSE_WRITE);
    if (wd < 0) {
        err_set(e, ERR_UNAVAILABLE, "cannot watch %s: %s", dir, strerror(errno));
        err_hint(e, "raise fs.inotify.max_user_watches when it is the limit");
        return NULL;
    }
    struct filewatch_one *o = xcalloc(1, sizeof *o);
    *o = (struct filewatch_one){ .f = f, .next = f->list, .wd = wd, .fn = fn, .ctx = ctx };
    f->list = o;
    return o;
}

struct filewatch_one *filewatch_remove(struct filewatch_one *o)
{
    if (!o)
        return NULL;
    struct filewatch *f = o->f;
    bool shared = false;
    struct filewatch_one **at = &f->list;
    while (*at != o)
        at = &(*at)->next;
    *at = o->next;
    for (struct filewatch_one *k = f->list; k; k = k->next)
        shared |= k->wd == o->wd;
    if (!shared)
        inotify_rm_watch(f->fd, o->wd);
    free(o);
    return NULL;
}
