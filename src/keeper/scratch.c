#include "keeper/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "keeper/scratch_kind.h"
#include "keeper/tool.h"
#include "sys/clock.h"
#include "sys/file.h"

#define FIRST_PROJECT 0x4e530000u /* away from what people count from 1 */
#define LIGHT_BYTES (4u << 20)
#define REMOVE_MS (UINT64_C(6) * 3600 * 1000)
#define SIZE_MAX_MIB (UINT64_C(1) << 26) /* 64 TiB */

struct scratch {
    struct scratch_site site;
    struct loop *loop;
    struct log *log;
    uint64_t tmpfs_max_mib;
    bool works[SCRATCH_KIND_COUNT];
    struct tool *remover; /* rm at work on .trash */
    unsigned thrown;      /* makes names in .trash */
    bool more;            /* something was thrown away since rm began */
};

static const struct kind_row {
    const char *name, *help;
} kinds[] = {
#define X(id, name, help) { name, help },
    SCRATCH_KINDS(X)
#undef X
};

const char *scratch_kind_name(enum scratch_kind k)
{
    return kinds[k].name;
}

const char *scratch_kind_help(enum scratch_kind k)
{
    return kinds[k].help;
}

static bool good_name(const char *task)
{
    size_t n = strlen(task);
    return n > 0 && n <= 64 && task[0] != '.' &&
           strspn(task, "0123456789."
                        "abcdefghijklmnopqrstuvwxyz"
                        "ABCDEFGHIJKLMNOPQRSTUVWXYZ-_") == n;
}

static void path_of(const struct scratch *s, const char *task, char out[static SCRATCH_PATH_MAX])
{
    snprintf(out, SCRATCH_PATH_MAX, "%s/%.64s", s->site.dir, task);
}

static int make_dir(const char *path, mode_t mode, struct err *e)
{
    if (mkdir(path, mode) < 0 && errno != EEXIST)
        return err_set(e, ERR_UNAVAILABLE, "cannot make folder '%s': %s", path, strerror(errno));
    return 0;
}

static int make_dirs(const struct scratch *s, struct err *e)
{
    static const char *const names[] = { "", ".loop", ".trash" };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char path[SCRATCH_PATH_MAX];
        path_of(s, names[i], path);
        if (make_dir(path, 0700, e) < 0)
            return -1;
    }
    return 0;
}

/* A project id must not be given again while files have it. */
static void learn_projects(struct scratch *s, const char *folder)
{
    char path[SCRATCH_PATH_MAX], item[SCRATCH_PATH_MAX + 260];
    path_of(s, folder, path);
    DIR *d = opendir(path);
    for (struct dirent *x; d && (x = readdir(d));) {
        snprintf(item, sizeof item, "%s/%s", path, x->d_name);
        uint32_t id = x->d_name[0] == '.' ? 0 : scratch_project_of(item);
        if (id >= s->site.next_project && id < UINT32_MAX)
            s->site.next_project = id + 1;
    }
    if (d)
        closedir(d);
}

/* ---- throwing away ---- */

static void empty_trash(struct scratch *s);

static void on_trash_empty(void *ctx, const struct tool_result *r)
{
    struct scratch *s = ctx;
    s->remover = NULL;
    if (r->how.code || r->how.signal)
        log_event(s->log, LOG_WARN_, "scratch.remove_failed", "why=%.*s",
                  (int)MIN(r->err.n, (size_t)200), r->err.p);
    if (s->more)
        empty_trash(s);
}

/* A task may leave a million files; deleting them is not for the loop. */
static void empty_trash(struct scratch *s)
{
    static const char script[] =
        "cd \"$1\" && find . -mindepth 1 -maxdepth 1 -exec rm -rf --one-file-system {} +";
    char trash[SCRATCH_PATH_MAX];
    struct err e;
    s->more = s->remover != NULL;
    if (s->remover)
        return;
    path_of(s, ".trash", trash);
    const char *argv[] = { "/bin/sh", "-c", script, "sh", trash, NULL };
    struct tool_spec spec = { .argv = argv, .in_fd = PROCESS_NO_FD, .timeout_ms = REMOVE_MS };
    s->remover = tool_run(s->loop, &spec, on_trash_empty, s, &e);
    if (!s->remover)
        log_event(s->log, LOG_WARN_, "scratch.remove_failed", "why=%s", e.msg);
}

static int throw_away(struct scratch *s, const char *path, struct err *e)
{
    char to[SCRATCH_PATH_MAX];
    if (rmdir(path) == 0 || errno == ENOENT)
        return 0;
    do {
        snprintf(to, sizeof to, "%s/.trash/%u", s->site.dir, s->thrown++);
    } while (access(to, F_OK) == 0);
    if (rename(path, to) < 0)
        return err_set(e, ERR_UNAVAILABLE, "cannot move '%s' away: %s", path, strerror(errno));
    empty_trash(s);
    return 0;
}

/* ---- trying what works ---- */

static void probe(struct scratch *s, enum scratch_kind k)
{
    char path[SCRATCH_PATH_MAX];
    struct err e = { 0 }, ignored;
    int64_t began_ns = clock_mono_ns();
    snprintf(path, sizeof path, "%s/.probe", s->site.dir);
    s->works[k] = make_dir(path, 0700, &e) == 0 && scratch_ops[k].probe(&s->site, path, &e) == 0;
    long long us = (clock_mono_ns() - began_ns) / 1000;
    if (scratch_unbind(&s->site, path, &ignored) == 0)
        rmdir(path);
    if (s->works[k])
        log_event(s->log, LOG_INFO_, "scratch.kind", "kind=%s probe_us=%lld", kinds[k].name, us);
    else
        log_event(s->log, LOG_INFO_, "scratch.no_kind", "kind=%s why=%s", kinds[k].name, e.msg);
}

struct scratch *scratch_new(const struct scratch_config *c, struct err *e)
{
    AUTO(scratch_free_p) struct scratch *s = xcalloc(1, sizeof *s);
    s->loop = c->loop;
    s->log = c->log;
    s->tmpfs_max_mib = c->tmpfs_max_mib ? c->tmpfs_max_mib : 256;
    s->site.next_project = FIRST_PROJECT;
    if (strlen(c->dir) >= sizeof s->site.dir) {
        err_set(e, ERR_TOO_LARGE, "the folder '%s' has more than %zu characters", c->dir,
                sizeof s->site.dir - 1);
        return NULL;
    }
    memcpy(s->site.dir, c->dir, strlen(c->dir) + 1);
    if (make_dirs(s, e) < 0)
        return NULL;
    learn_projects(s, "");
    learn_projects(s, ".trash");
    for (unsigned k = 0; k < SCRATCH_KIND_COUNT; k++)
        if (k == SCRATCH_PLAIN || !(c->without & 1u << k))
            probe(s, (enum scratch_kind)k);
    return TAKE(s);
}

struct scratch *scratch_free(struct scratch *s)
{
    if (!s)
        return NULL;
    tool_stop(s->remover);
    free(s);
    return NULL;
}

void scratch_free_p(struct scratch **s)
{
    *s = scratch_free(*s);
}

static bool suits(const struct scratch *s, enum scratch_kind k, uint64_t mib)
{
    return s->works[k] && (k != SCRATCH_TMPFS || mib <= s->tmpfs_max_mib);
}

enum scratch_kind scratch_choose(const struct scratch *s, uint64_t mib)
{
    unsigned k = 0;
    while (k < SCRATCH_PLAIN && !suits(s, (enum scratch_kind)k, mib))
        k++;
    return (enum scratch_kind)k;
}

bool scratch_bounded(const struct scratch *s)
{
    return scratch_choose(s, SIZE_MAX_MIB) != SCRATCH_PLAIN;
}

/* ---- one task's ---- */

static int furnish(const char *path, const struct scratch_want *w, struct err *e)
{
    static const char *const names[] = { "tmp", "var-tmp" };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char sub[SCRATCH_PATH_MAX + 16];
        snprintf(sub, sizeof sub, "%s/%s", path, names[i]);
        if (make_dir(sub, 0700, e) < 0)
            return -1;
        if (lchown(sub, w->uid, w->gid) < 0 || chmod(sub, 01777) < 0)
            return err_set(e, ERR_UNAVAILABLE, "cannot give '%s' to its user: %s", sub,
                           strerror(errno));
    }
    return 0;
}

/* The last thing that is made, and only root can write there: it is whole. */
static void marker_of(const char *path, char out[static SCRATCH_PATH_MAX + 16])
{
    snprintf(out, SCRATCH_PATH_MAX + 16, "%s/.whole", path);
}

static int build(struct scratch *s, const char *path, const struct scratch_want *w, struct err *e)
{
    char marker[SCRATCH_PATH_MAX + 16];
    if (make_dir(path, 0711, e) < 0 ||
        scratch_ops[scratch_choose(s, w->mib)].make(&s->site, path, w->mib, e) < 0 ||
        chmod(path, 0711) < 0 || furnish(path, w, e) < 0)
        return -1;
    marker_of(path, marker);
    return make_dir(marker, 0700, e);
}

int scratch_make(struct scratch *s, const struct scratch_want *w,
                 char out_path[static SCRATCH_PATH_MAX], struct err *e)
{
    char path[SCRATCH_PATH_MAX], marker[SCRATCH_PATH_MAX + 16];
    struct err ignored;
    if (!good_name(w->task))
        return err_set(e, ERR_INVALID, "'%.80s' is not a name of a task", w->task);
    if (w->mib == 0 || w->mib > SIZE_MAX_MIB)
        return err_set(e, ERR_INVALID, "a scratch of %llu MiB cannot be made",
                       (unsigned long long)w->mib);
    path_of(s, w->task, path);
    marker_of(path, marker);
    bool there = access(marker, F_OK) == 0;
    if (!there && scratch_remove(s, w->task, e) < 0) /* what a killed keeper began */
        return -1;
    if (!there && build(s, path, w, e) < 0) {
        if (scratch_remove(s, w->task, &ignored) < 0)
            log_event(s->log, LOG_WARN_, "scratch.remove_failed", "why=%s", ignored.msg);
        return err_wrap(e, "making a scratch of %llu MiB", (unsigned long long)w->mib);
    }
    memcpy(out_path, path, sizeof path);
    return 0;
}

/* Whoever lets go of a mounted file system last does the work of ending it: an open folder of it
 * holds it, and a child that exits with that folder does the work for us. */
static int hold(const char *path)
{
    struct statfs f;
    bool light = statfs(path, &f) == 0 && f.f_type == TMPFS_MAGIC &&
                 (f.f_blocks - f.f_bfree) * (uint64_t)f.f_bsize < LIGHT_BYTES;
    return light || !scratch_is_mounted(path) ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void on_let_go(void *ctx, const struct process_exit *how)
{
    (void)ctx, (void)how;
}

static void let_go(struct scratch *s, int held)
{
    const char *argv[] = { "/bin/true", NULL };
    struct process_spec spec = { .argv = argv, .fd = { held, PROCESS_NO_FD, PROCESS_NO_FD } };
    struct err ignored; /* then we do the work after all */
    if (held >= 0)
        process_free(process_spawn(s->loop, &spec, on_let_go, NULL, &ignored));
}

int scratch_remove(struct scratch *s, const char *task, struct err *e)
{
    char path[SCRATCH_PATH_MAX];
    if (!good_name(task))
        return err_set(e, ERR_INVALID, "'%.80s' is not a name of a task", task);
    path_of(s, task, path);
    AUTO(file_close_p) int held = hold(path);
    if (scratch_unbind(&s->site, path, e) < 0)
        return -1;
    let_go(s, held);
    return throw_away(s, path, e);
}

/* ext4 refuses a large write as a whole, so what is left when a program first hears "no space" may be
 * up to a megabyte or so. */
static bool little_is_left(const struct statvfs *v)
{
    uint64_t all = (uint64_t)v->f_blocks * v->f_frsize, left = (uint64_t)v->f_bavail * v->f_frsize;
    uint64_t little = MIN(all / 64, UINT64_C(16) << 20);
    return left < MAX(little, UINT64_C(64) << 10);
}

bool scratch_full(const struct scratch *s, const char *task)
{
    char path[SCRATCH_PATH_MAX];
    struct statvfs v;
    if (!good_name(task))
        return false;
    path_of(s, task, path);
    /* With a project quota the kernel answers for the project. */
    if (statvfs(path, &v) < 0)
        return false;
    return little_is_left(&v) || (v.f_files > 0 && v.f_favail == 0);
}

/* Files without a folder are from a keeper that was killed between the two. */
static void sweep_folder(struct scratch *s, const char *folder,
                         bool (*alive)(void *ctx, const char *task), void *ctx)
{
    char path[SCRATCH_PATH_MAX];
    struct err e;
    path_of(s, folder, path);
    DIR *d = opendir(path);
    for (struct dirent *x; d && (x = readdir(d));) {
        if (!good_name(x->d_name) || strncmp(x->d_name, "t.", 2) == 0 || alive(ctx, x->d_name))
            continue;
        if (scratch_remove(s, x->d_name, &e) < 0)
            log_event(s->log, LOG_WARN_, "scratch.remove_failed", "task=%s why=%s", x->d_name,
                      e.msg);
    }
    if (d)
        closedir(d);
}

void scratch_sweep(struct scratch *s, bool (*alive)(void *ctx, const char *task), void *ctx)
{
    sweep_folder(s, "", alive, ctx);
    sweep_folder(s, ".loop", alive, ctx);
    empty_trash(s);
}
