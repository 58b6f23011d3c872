#include "keeper/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/parse.h"
#include "keeper/rootfs.h"
#include "keeper/scratch_kind.h"
#include "keeper/scratch_trash.h"
#include "sys/clock.h"
#include "sys/file.h"

#define FIRST_PROJECT 0x4e530000u        /* away from what people count from 1 */
#define SIZE_MAX_MIB (UINT64_C(1) << 26) /* 64 TiB */
#define IDLE_MAX 64
#define IDLE_NS (INT64_C(60) * 1000000000)
#define IDLE_LOOK_MS 20000
#define IDLE_BYTES (UINT64_C(16) << 20) /* on disk; a fresh one of 1 GiB has 2 MiB */
#define IDLE_FILES 64                   /* so many are deleted at once; ext4 itself has a dozen */

struct place {
    uint64_t number, mib; /* mib 0: adopted, its size is not known */
    enum scratch_kind kind;
    int64_t since_ns; /* idle */
};

struct scratch {
    struct scratch_site site;
    struct loop *loop;
    struct log *log;
    uint64_t tmpfs_max_mib, look_ms;
    bool works[SCRATCH_KIND_COUNT];
    struct scratch_trash *trash;
    char trash_dir[SCRATCH_PATH_MAX];
    uint64_t next; /* the number of the next place */
    struct place *used, *idle;
    size_t n_used, cap_used, n_idle, cap_idle;
    struct loop_watch *timer; /* set while some are idle or left */
    bool ticks, left;         /* left: what could not be removed is tried again */
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

static void path_of(const struct scratch *s, const char *name, char out[static SCRATCH_PATH_MAX])
{
    snprintf(out, SCRATCH_PATH_MAX, "%s/%.64s", s->site.dir, name);
}

static void place_path(const struct scratch *s, uint64_t number, char out[static SCRATCH_PATH_MAX])
{
    snprintf(out, SCRATCH_PATH_MAX, "%s/%llu", s->site.dir, (unsigned long long)number);
}

/* The number of a place in our folder; 0: it is none. */
static uint64_t place_number(const struct scratch *s, const char *path)
{
    size_t n = strlen(s->site.dir);
    uint64_t number;
    struct err e;
    if (strncmp(path, s->site.dir, n) != 0 || path[n] != '/' ||
        parse_u64(str_of(path + n + 1), UINT64_MAX, &number, &e) < 0)
        return 0;
    return number;
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

/* Neither a number nor a project id must be given again while files have it. */
static void learn_numbers(struct scratch *s, const char *folder)
{
    char path[SCRATCH_PATH_MAX], item[SCRATCH_PATH_MAX + 260];
    path_of(s, folder, path);
    DIR *d = opendir(path);
    for (struct dirent *x; d && (x = readdir(d));) {
        snprintf(item, sizeof item, "%s/%s", path, x->d_name);
        uint32_t id = x->d_name[0] == '.' ? 0 : scratch_project_of(item);
        if (id >= s->site.next_project && id < UINT32_MAX)
            s->site.next_project = id + 1;
        snprintf(item, sizeof item, "%s/%s", s->site.dir, x->d_name);
        s->next = MAX(s->next, place_number(s, item) + 1);
    }
    if (d)
        closedir(d);
}

static void on_timer(void *ctx);

static void mind(struct scratch *s)
{
    bool wanted = s->n_idle > 0 || s->left;
    if (wanted && !s->ticks)
        loop_timer_set(s->timer, s->look_ms, s->look_ms);
    else if (!wanted && s->ticks)
        loop_timer_clear(s->timer);
    s->ticks = wanted;
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
    s->look_ms = c->look_ms ? c->look_ms : IDLE_LOOK_MS;
    s->site.next_project = FIRST_PROJECT;
    s->next = 1; /* 0 is no place */
    if (strlen(c->dir) >= sizeof s->site.dir) {
        err_set(e, ERR_TOO_LARGE, "the folder '%s' has more than %zu characters", c->dir,
                sizeof s->site.dir - 1);
        return NULL;
    }
    memcpy(s->site.dir, c->dir, strlen(c->dir) + 1);
    if (make_dirs(s, e) < 0)
        return NULL;
    learn_numbers(s, "");
    learn_numbers(s, ".loop");
    learn_numbers(s, ".trash");
    for (unsigned k = 0; k < SCRATCH_KIND_COUNT; k++)
        if (k == SCRATCH_PLAIN || !(c->without & 1u << k))
            probe(s, (enum scratch_kind)k);
    path_of(s, ".trash", s->trash_dir);
    s->trash = trash_new(s->loop, s->log, s->trash_dir);
    s->timer = loop_timer(s->loop, on_timer, s);
    return TAKE(s);
}

struct scratch *scratch_free(struct scratch *s)
{
    if (!s)
        return NULL;
    s->trash = trash_free(s->trash);
    loop_unwatch(s->timer);
    free(s->used);
    free(s->idle);
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

/* ---- ending one ---- */

static int end_place(struct scratch *s, const char *path, struct err *e)
{
    int held = trash_hold(path), rc = scratch_unbind(&s->site, path, e);
    trash_let_go(s->trash, held);
    if (rc == 0)
        rc = trash_throw(s->trash, path, s->next++, e);
    s->left |= rc < 0;
    mind(s);
    return rc;
}

/* ---- those kept for the next task ---- */

static const char *const own_folders[] = { "tmp", "var-tmp" };

static bool is_empty(const char *path)
{
    DIR *d = opendir(path);
    bool empty = d != NULL;
    for (struct dirent *x; d && (x = readdir(d));)
        empty &= strcmp(x->d_name, ".") == 0 || strcmp(x->d_name, "..") == 0;
    if (d)
        closedir(d);
    return empty;
}

/* The folders go with all their user set on them and the little that is left in them; a place with
 * more in it is not kept. */
static bool make_empty(const char *path)
{
    struct statvfs v;
    struct err e;
    if (statvfs(path, &v) < 0 || v.f_files - v.f_ffree > IDLE_FILES)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(own_folders); i++) {
        char sub[SCRATCH_PATH_MAX + 16];
        snprintf(sub, sizeof sub, "%s/%s", path, own_folders[i]);
        if (tree_remove(sub, &e) < 0)
            return false;
    }
    return is_empty(path);
}

static bool keep(struct scratch *s, struct place p, const char *path)
{
    if (!p.mib || !scratch_ops[p.kind].costly || s->n_idle >= IDLE_MAX ||
        scratch_disk_bytes(&s->site, path) > IDLE_BYTES || !make_empty(path))
        return false;
    p.since_ns = clock_mono_ns();
    vec_grow(s->idle, s->n_idle, s->cap_idle);
    s->idle[s->n_idle++] = p;
    mind(s);
    return true;
}

/* Ends those that wait since before `ns`; the oldest come first. */
static void drop_idle(struct scratch *s, int64_t ns)
{
    size_t n = 0;
    while (n < s->n_idle && s->idle[n].since_ns <= ns) {
        char path[SCRATCH_PATH_MAX];
        struct err e;
        place_path(s, s->idle[n++].number, path);
        if (end_place(s, path, &e) < 0)
            log_event(s->log, LOG_WARN_, "scratch.remove_failed", "why=%s", e.msg);
    }
    s->n_idle -= n;
    if (s->n_idle > 0)
        memmove(s->idle, s->idle + n, s->n_idle * sizeof *s->idle);
    mind(s);
}

void scratch_drop_idle(struct scratch *s)
{
    drop_idle(s, INT64_MAX);
}

/* The one that waits for the shortest time: the others may go. */
static bool take_idle(struct scratch *s, enum scratch_kind kind, uint64_t mib, struct place *out)
{
    for (size_t i = s->n_idle; i-- > 0;) {
        if (s->idle[i].kind != kind || s->idle[i].mib != mib)
            continue;
        *out = s->idle[i];
        memmove(&s->idle[i], &s->idle[i + 1], (s->n_idle - i - 1) * sizeof *s->idle);
        s->n_idle--;
        mind(s);
        return true;
    }
    return false;
}

/* ---- one task's ---- */

static int furnish(const char *path, const struct scratch_want *w, struct err *e)
{
    for (size_t i = 0; i < ARRAY_LEN(own_folders); i++) {
        char sub[SCRATCH_PATH_MAX + 16];
        snprintf(sub, sizeof sub, "%s/%s", path, own_folders[i]);
        if (make_dir(sub, 0700, e) < 0)
            return -1;
        if (lchown(sub, w->uid, w->gid) < 0 || chmod(sub, 01777) < 0)
            return err_set(e, ERR_UNAVAILABLE, "cannot give '%s' to its user: %s", sub,
                           strerror(errno));
    }
    return 0;
}

static int build(struct scratch *s, const struct place *p, const char *path, struct err *e)
{
    if (make_dir(path, 0711, e) < 0 || scratch_ops[p->kind].make(&s->site, path, p->mib, e) < 0)
        return -1;
    if (chmod(path, 0711) < 0)
        return err_set(e, ERR_UNAVAILABLE, "cannot change '%s': %s", path, strerror(errno));
    return 0;
}

static void note_used(struct scratch *s, struct place p)
{
    vec_grow(s->used, s->n_used, s->cap_used);
    s->used[s->n_used++] = p;
}

int scratch_take(struct scratch *s, const struct scratch_want *w,
                 char out_path[static SCRATCH_PATH_MAX], struct err *e)
{
    char path[SCRATCH_PATH_MAX];
    struct err ignored;
    if (w->mib == 0 || w->mib > SIZE_MAX_MIB)
        return err_set(e, ERR_INVALID, "a scratch of %llu MiB cannot be made",
                       (unsigned long long)w->mib);
    struct place p = { .kind = scratch_choose(s, w->mib), .mib = w->mib };
    bool there = take_idle(s, p.kind, p.mib, &p);
    if (!there)
        p.number = s->next++;
    place_path(s, p.number, path);
    if ((!there && build(s, &p, path, e) < 0) || furnish(path, w, e) < 0) {
        if (end_place(s, path, &ignored) < 0)
            log_event(s->log, LOG_WARN_, "scratch.remove_failed", "why=%s", ignored.msg);
        return err_wrap(e, "making a scratch of %llu MiB", (unsigned long long)w->mib);
    }
    note_used(s, p);
    memcpy(out_path, path, sizeof path);
    return 0;
}

int scratch_adopt(struct scratch *s, const char *path, struct err *e)
{
    uint64_t number = place_number(s, path);
    if (!number)
        return err_set(e, ERR_INVALID, "'%s' is no scratch of ours", path);
    note_used(s, (struct place){ .number = number });
    return 0;
}

/* Its index among the n; n: it is none of them. */
static size_t find_place(const struct place *p, size_t n, uint64_t number)
{
    size_t i = 0;
    while (i < n && p[i].number != number)
        i++;
    return i;
}

int scratch_give_back(struct scratch *s, const char *path, struct err *e)
{
    size_t i = find_place(s->used, s->n_used, place_number(s, path));
    if (i == s->n_used)
        return 0;
    struct place p = s->used[i];
    s->used[i] = s->used[--s->n_used];
    return keep(s, p, path) ? 0 : end_place(s, path, e);
}

/* ext4 refuses a large write as a whole, so what is left when a program first hears "no space" may be
 * up to a megabyte or so. */
static bool little_is_left(const struct statvfs *v)
{
    uint64_t all = (uint64_t)v->f_blocks * v->f_frsize, left = (uint64_t)v->f_bavail * v->f_frsize;
    uint64_t little = MIN(all / 64, UINT64_C(16) << 20);
    return left < MAX(little, UINT64_C(64) << 10);
}

bool scratch_full(const char *path)
{
    struct statvfs v;
    /* With a project quota the kernel answers for the project. */
    if (!path[0] || statvfs(path, &v) < 0)
        return false;
    return little_is_left(&v) || (v.f_files > 0 && v.f_favail == 0);
}

/* Files without a folder are from a keeper that was killed between the two. */
static void sweep_folder(struct scratch *s, const char *folder)
{
    char dir[SCRATCH_PATH_MAX], path[SCRATCH_PATH_MAX];
    struct err e;
    path_of(s, folder, dir);
    DIR *d = opendir(dir);
    for (struct dirent *x; d && (x = readdir(d));) {
        path_of(s, x->d_name, path);
        uint64_t number = place_number(s, path);
        if (!number || find_place(s->used, s->n_used, number) < s->n_used ||
            find_place(s->idle, s->n_idle, number) < s->n_idle)
            continue;
        if (end_place(s, path, &e) < 0)
            log_event(s->log, LOG_WARN_, "scratch.remove_failed", "name=%s why=%s", x->d_name,
                      e.msg);
    }
    if (d)
        closedir(d);
}

void scratch_sweep(struct scratch *s)
{
    s->left = false;
    sweep_folder(s, "");
    sweep_folder(s, ".loop");
    mind(s);
    trash_empty(s->trash);
}

static void on_timer(void *ctx)
{
    struct scratch *s = ctx;
    drop_idle(s, clock_mono_ns() - IDLE_NS);
    if (s->left)
        scratch_sweep(s);
}
