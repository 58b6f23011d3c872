#include "keeper/scratch_trash.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "keeper/scratch_kind.h"
#include "keeper/tool.h"
#include "sys/worker.h"

#define LIGHT_BYTES (4u << 20)
#define REMOVE_MS (UINT64_C(6) * 3600 * 1000)

struct scratch_trash {
    struct loop *loop;
    struct log *log;
    const char *dir;
    struct tool *remover;  /* rm at work on the folder */
    bool more;             /* something was thrown away since rm began */
    struct worker *closer; /* made when it is needed first */
};

/* ---- closing, on a thread ---- */

struct closing {
    struct worker_item item;
    int fd;
};

static void run_closer(void *ctx, struct worker *w)
{
    (void)ctx;
    for (struct worker_item *all; (all = worker_take(w, true));) {
        while (all) {
            struct worker_item *next = all->next;
            close(((struct closing *)(void *)all)->fd);
            worker_return(w, all);
            all = next;
        }
    }
}

static void on_closed(void *ctx, struct worker_item *item)
{
    (void)ctx;
    free(item);
}

int trash_hold(const char *path)
{
    struct statfs f;
    bool light = statfs(path, &f) == 0 && f.f_type == TMPFS_MAGIC &&
                 (f.f_blocks - f.f_bfree) * (uint64_t)f.f_bsize < LIGHT_BYTES;
    return light || !scratch_is_mounted(path) ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

void trash_let_go(struct scratch_trash *t, int held)
{
    if (held < 0)
        return;
    if (!t->closer)
        t->closer = worker_new(t->loop, run_closer, NULL, on_closed, NULL);
    struct closing *c = xcalloc(1, sizeof *c);
    c->fd = held;
    worker_give(t->closer, &c->item);
}

/* ---- deleting, by a child process ---- */

static void on_empty(void *ctx, const struct tool_result *r)
{
    struct scratch_trash *t = ctx;
    t->remover = NULL;
    if (r->how.code || r->how.signal)
        log_event(t->log, LOG_WARN_, "scratch.remove_failed", "why=%.*s",
                  (int)MIN(r->err.n, (size_t)200), r->err.p);
    if (t->more)
        trash_empty(t);
}

void trash_empty(struct scratch_trash *t)
{
    static const char script[] =
        "cd \"$1\" && find . -mindepth 1 -maxdepth 1 -exec rm -rf --one-file-system {} +";
    struct err e;
    t->more = t->remover != NULL;
    if (t->remover)
        return;
    const char *argv[] = { "/bin/sh", "-c", script, "sh", t->dir, NULL };
    struct tool_spec spec = { .argv = argv, .in_fd = PROCESS_NO_FD, .timeout_ms = REMOVE_MS };
    t->remover = tool_run(t->loop, &spec, on_empty, t, &e);
    if (!t->remover)
        log_event(t->log, LOG_WARN_, "scratch.remove_failed", "why=%s", e.msg);
}

int trash_throw(struct scratch_trash *t, const char *path, uint64_t name, struct err *e)
{
    char to[SCRATCH_PATH_MAX + 32];
    if (rmdir(path) == 0 || errno == ENOENT)
        return 0;
    snprintf(to, sizeof to, "%s/%llu", t->dir, (unsigned long long)name);
    if (rename(path, to) < 0)
        return err_set(e, ERR_UNAVAILABLE, "cannot move '%s' away: %s", path, strerror(errno));
    trash_empty(t);
    return 0;
}

struct scratch_trash *trash_new(struct loop *l, struct log *log, const char *dir)
{
    struct scratch_trash *t = xcalloc(1, sizeof *t);
    *t = (struct scratch_trash){ .loop = l, .log = log, .dir = dir };
    return t;
}

struct scratch_trash *trash_free(struct scratch_trash *t)
{
    if (!t)
        return NULL;
    tool_stop(t->remover);
    worker_free(t->closer);
    free(t);
    return NULL;
}
