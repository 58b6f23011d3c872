#include "keeper/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sys/file.h"

#define LIBRARIES_MAX 64
#define LDD_MS 60000
#define LOADER_CACHE "/etc/ld.so.cache"

struct tool {
    struct loop *loop;
    struct process *child;
    struct loop_watch *timer;
    int out_fd, err_fd;
    bool late;
    tool_done_fn *fn;
    void *ctx;
};

static struct tool *tool_free(struct tool *t)
{
    process_free(t->child);
    loop_unwatch(t->timer);
    file_close_p(&t->out_fd);
    file_close_p(&t->err_fd);
    free(t);
    return NULL;
}

/* Its size is fixed, and how much was written is the position that we share with the child. */
static int memory_file(struct err *e)
{
    int fd = memfd_create("tool", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd >= 0 && ftruncate(fd, TOOL_OUT_MAX) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK) == 0)
        return fd;
    err_set(e, ERR_UNAVAILABLE, "cannot make a memory file: %s", strerror(errno));
    file_close_p(&fd);
    return -1;
}

static struct str map_written(int fd)
{
    off_t n = lseek(fd, 0, SEEK_CUR);
    if (n <= 0)
        return (struct str){ "", 0 };
    void *p = mmap(NULL, TOOL_OUT_MAX, PROT_READ, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return (struct str){ "", 0 };
    return (struct str){ p, MIN((size_t)n, (size_t)TOOL_OUT_MAX) };
}

static void unmap(struct str s)
{
    if (s.n > 0)
        munmap((void *)(uintptr_t)s.p, TOOL_OUT_MAX);
}

static void on_exit_of_tool(void *ctx, const struct process_exit *how)
{
    struct tool *t = ctx;
    struct tool_result r = {
        .how = *how, .late = t->late, .out = map_written(t->out_fd), .err = map_written(t->err_fd)
    };
    tool_done_fn *fn = t->fn;
    void *fn_ctx = t->ctx;
    tool_free(t);
    fn(fn_ctx, &r);
    unmap(r.out);
    unmap(r.err);
}

static void on_late(void *ctx)
{
    struct tool *t = ctx;
    t->late = true;
    process_kill(t->child, SIGKILL);
}

/* A child that asks to be killed with its parent asks too late when that is dead already: so it
 * looks, afterwards, whose child it is. */
struct front {
    const char *argv[64];
    size_t n;
    char pid[16], uid[32], gid[32], groups[4096], bounds[256];
};

/* Whoever gives up an account gives up the wish to be killed with us, so setpriv wishes it last. */
static void put_jail_in_front(const struct tool_jail *j, struct front *f)
{
    static const char bind[] = "mount --bind \"$0\" \"$1\" && shift && exec \"$@\"";
    f->argv[f->n++] = "unshare";
    f->argv[f->n++] = "--ipc";
    f->argv[f->n++] = "--uts";
    if (j->no_network)
        f->argv[f->n++] = "--net";
    if (j->from) {
        const char *const view[] = { "--mount", "--", "/bin/sh", "-c", bind, j->from, j->onto };
        for (size_t i = 0; i < ARRAY_LEN(view); i++)
            f->argv[f->n++] = view[i];
    } else {
        f->argv[f->n++] = "--";
    }
    snprintf(f->uid, sizeof f->uid, "--reuid=%u", j->uid);
    snprintf(f->gid, sizeof f->gid, "--regid=%u", j->gid);
    snprintf(f->groups, sizeof f->groups, "%s%s", j->groups ? "--groups=" : "--clear-groups",
             j->groups ? j->groups : "");
    snprintf(f->bounds, sizeof f->bounds, "--bounding-set=-all%s%s", j->keep ? "," : "",
             j->keep ? j->keep : "");
    f->argv[f->n++] = "setpriv";
    f->argv[f->n++] = f->uid;
    f->argv[f->n++] = f->gid;
    f->argv[f->n++] = f->groups;
    f->argv[f->n++] = f->bounds;
    f->argv[f->n++] = "--inh-caps=-all";
    f->argv[f->n++] = "--no-new-privs";
}

static int put_watch_in_front(const struct tool_spec *spec, struct front *f, struct err *e)
{
    const char *const watch[] = { "--pdeathsig=KILL", "/bin/sh", "-c",
                                  "[ \"$PPID\" = \"$0\" ] && exec \"$@\"", f->pid };
    f->n = 0;
    snprintf(f->pid, sizeof f->pid, "%d", getpid());
    if (spec->jail)
        put_jail_in_front(spec->jail, f);
    else
        f->argv[f->n++] = "setpriv";
    for (size_t i = 0; i < ARRAY_LEN(watch); i++)
        f->argv[f->n++] = watch[i];
    for (size_t i = 0; spec->argv[i]; i++) {
        if (f->n + 1 == ARRAY_LEN(f->argv))
            return err_set(e, ERR_INTERNAL, "too many arguments for '%s'", spec->argv[0]);
        f->argv[f->n++] = spec->argv[i];
    }
    f->argv[f->n] = NULL;
    return 0;
}

static struct process *start(struct tool *t, const struct tool_spec *spec, struct err *e)
{
    struct front watched;
    if (spec->ends_with_us && put_watch_in_front(spec, &watched, e) < 0)
        return NULL;
    struct process_spec p = { .argv = spec->ends_with_us ? watched.argv : spec->argv,
                              .env = spec->env,
                              .fd = { spec->in_fd, t->out_fd, t->err_fd },
                              .new_group = true };
    return process_spawn(t->loop, &p, on_exit_of_tool, t, e);
}

static struct process *start_confined(struct tool *t, const struct tool_spec *spec, struct err *e)
{
    AUTO(file_close_p) int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    pid_t pid;
    int pidfd;
    struct confine_program p = {
        .argv = spec->argv,
        .env = spec->env,
        .fd = { spec->in_fd == PROCESS_NO_FD ? null : spec->in_fd, t->out_fd, t->err_fd },
    };
    if (confine_start(spec->confine, &p, &pid, &pidfd, e) < 0)
        return NULL;
    return process_watch(t->loop, pid, pidfd, on_exit_of_tool, t);
}

struct tool *tool_run(struct loop *l, const struct tool_spec *spec, tool_done_fn *fn, void *ctx,
                      struct err *e)
{
    struct tool *t = xcalloc(1, sizeof *t);
    *t = (struct tool){ .loop = l, .out_fd = -1, .err_fd = -1, .fn = fn, .ctx = ctx };
    t->out_fd = memory_file(e);
    t->err_fd = t->out_fd < 0 ? -1 : memory_file(e);
    if (t->err_fd < 0)
        return tool_free(t);
    t->child = spec->confine ? start_confined(t, spec, e) : start(t, spec, e);
    if (!t->child)
        return tool_free(t);
    t->timer = loop_timer(l, on_late, t);
    loop_timer_set(t->timer, spec->timeout_ms, 0);
    return t;
}

int tool_pid(const struct tool *t)
{
    return process_pid(t->child);
}

void tool_kill(struct tool *t)
{
    process_kill(t->child, SIGKILL);
}

struct tool *tool_stop(struct tool *t)
{
    if (!t)
        return NULL;
    process_kill(t->child, SIGKILL);
    return tool_free(t);
}

int tool_wait(const char *const *argv, uint64_t timeout_ms, struct buf *out,
              struct process_exit *out_how, struct err *e)
{
    /* process_capture keeps stdout only, and what went wrong stands on stderr. */
    const char *sh[32] = { "/bin/sh", "-c", "exec \"$@\" 2>&1", "sh" };
    size_t n = 4;
    for (size_t i = 0; argv[i]; i++) {
        if (n + 1 == ARRAY_LEN(sh))
            return err_set(e, ERR_INTERNAL, "too many arguments for '%s'", argv[0]);
        sh[n++] = argv[i];
    }
    sh[n] = NULL;
    return process_capture(sh, TOOL_OUT_MAX, timeout_ms, out, out_how, e);
}

static bool runnable(const char *dir, size_t dir_n, const char *name, char *out)
{
    int n = snprintf(out, TOOL_PATH_MAX, "%.*s/%s", (int)dir_n, dir, name);
    return dir_n > 0 && n < TOOL_PATH_MAX && access(out, X_OK) == 0;
}

int tool_find(const char *name, const char *const *dirs, const char *package,
              char out_path[static TOOL_PATH_MAX], struct err *e)
{
    static const char *const usual[] = { "/usr/sbin", "/sbin", "/usr/bin", "/bin", NULL };
    char found[TOOL_PATH_MAX];
    bool ok = false;
    const char *path = getenv("PATH");
    struct str rest = str_of(!dirs && path ? path : ""), dir;
    while (!ok && rest.n > 0) {
        str_cut(rest, ':', &dir, &rest);
        ok = dir.n < TOOL_PATH_MAX && runnable(dir.p, dir.n, name, found);
    }
    for (const char *const *d = dirs ? dirs : usual; !ok && *d; d++)
        ok = runnable(*d, strlen(*d), name, found);
    if (ok) {
        memcpy(out_path, found, sizeof found);
        return 0;
    }
    err_set(e, ERR_UNAVAILABLE, "the program '%s' is missing", name);
    return err_hint(e, "install it: apt install %s", package);
}

/* The loader says of each what it is and where: "libc.so.6 => /lib/libc.so.6 (0x7f12)". */
int tool_libraries(const char *program, struct arena *a, const char *const **out, struct err *e)
{
    const char *argv[] = { "ldd", program, NULL };
    AUTO(buf_free) struct buf text = BUF(TOOL_OUT_MAX);
    struct process_exit how;
    const char *list[LIBRARIES_MAX + 2];
    size_t n = 0;
    if (tool_wait(argv, LDD_MS, &text, &how, e) < 0)
        return -1;
    struct str rest = buf_str(&text), word = { "", 0 };
    while (str_next_word(&rest, &word)) {
        if (how.code || how.signal || word.p[0] != '/')
            continue; /* it fails of one that needs none */
        if (n == LIBRARIES_MAX)
            return err_set(e, ERR_TOO_LARGE, "'%s' needs more than %d libraries", program,
                           LIBRARIES_MAX);
        list[n++] = arena_strndup(a, word.p, word.n);
    }
    if (n && access(LOADER_CACHE, R_OK) == 0)
        list[n++] = LOADER_CACHE;
    list[n++] = NULL;
    const char **copy = arena_array(a, const char *, n);
    memcpy(copy, list, n * sizeof *list);
    *out = copy;
    return 0;
}
