#include "keeper/image.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "keeper/image_fetch.h"
#include "sys/file.h"

#define GROUPS_MAX 256
#define REMOVE_MS (UINT64_C(6) * 3600 * 1000)

/* One fetch and all who wait for it. */
struct shared {
    struct image_store *store;
    struct image_fetch *fetch;
    char *ref, stamp[96];
    struct shared *next;
};

struct image_want {
    struct image_store *store;
    struct shared *shared; /* NULL: the answer is known and comes with the timer */
    struct loop_watch *soon;
    char digest[IMAGE_DIGEST]; /* "" when e is the answer */
    struct err e;
    image_progress_fn *progress;
    image_done_fn *done;
    void *ctx;
    struct image_want *next;
};

struct image_store {
    struct image_disk disk;
    struct image_tools tools;
    struct arena arena;
    struct log *log;
    uint64_t keep_bytes, grace_ms;
    unsigned fetches; /* ever begun: numbers them */
    struct shared *at_work;
    struct image_want *wants;
    struct tool *remover;
    bool more_trash;
};

/* ---- deleting ---- */

static void empty_trash(struct image_store *s);

static void on_trash_empty(void *ctx, const struct tool_result *r)
{
    struct image_store *s = ctx;
    s->remover = NULL;
    if (r->how.code || r->how.signal)
        log_event(s->log, LOG_WARN_, "image.remove_failed", "why=%.*s",
                  (int)MIN(r->err.n, (size_t)200), r->err.p);
    if (s->more_trash)
        empty_trash(s);
}

static void empty_trash(struct image_store *s)
{
    static const char script[] =
        "cd \"$1/trash\" && find . -mindepth 1 -maxdepth 1 -exec rm -rf --one-file-system {} +";
    struct err e;
    s->more_trash = s->remover != NULL;
    if (s->remover)
        return;
    const char *argv[] = { "/bin/sh", "-c", script, "sh", s->disk.dir, NULL };
    struct tool_spec spec = { .argv = argv, .in_fd = PROCESS_NO_FD, .timeout_ms = REMOVE_MS };
    s->remover = tool_run(s->tools.loop, &spec, on_trash_empty, s, &e);
    if (!s->remover)
        log_event(s->log, LOG_WARN_, "image.remove_failed", "why=%s", e.msg);
}

/* What is left then, in use or used just now. */
static uint64_t prune(struct image_store *s)
{
    uint64_t left;
    unsigned n = image_disk_prune(&s->disk, s->keep_bytes, s->grace_ms, &left);
    if (n) {
        log_event(s->log, LOG_INFO_, "image.pruned", "images=%u", n);
        empty_trash(s);
    }
    return left;
}

void image_prune(struct image_store *s)
{
    prune(s);
}

/* Before more is fetched: what a fetch brings is known only when it is here. */
static int check_room(struct image_store *s, struct err *e)
{
    uint64_t left = prune(s);
    if (left < s->keep_bytes)
        return 0;
    err_set(e, ERR_UNAVAILABLE,
            "images take %llu MiB on this machine, of at most %llu, and all are in use",
            (unsigned long long)(left >> 20), (unsigned long long)(s->keep_bytes >> 20));
    return err_hint(
        e, "try again when other jobs have ended; an administrator may raise images_total");
}

/* ---- the store ---- */

static int find_tools(struct image_tools *t, struct arena *a, struct err *e)
{
    if (tool_find("skopeo", NULL, "skopeo", t->skopeo, e) < 0)
        return err_wrap(e, "container images");
    if (tool_find("umoci", NULL, "umoci", t->umoci, e) < 0 ||
        tool_libraries(t->umoci, a, &t->umoci_files, e) < 0)
        return err_wrap(e, "container images");
    return 0;
}

struct image_store *image_open(const struct image_config *c, struct err *e)
{
    AUTO(image_close_p) struct image_store *s = xcalloc(1, sizeof *s);
    const char *auth = c->authfile ? c->authfile : "";
    s->log = c->log;
    s->keep_bytes = c->keep_bytes ? c->keep_bytes : UINT64_C(200) << 30;
    s->grace_ms = c->grace_ms ? c->grace_ms : 600000;
    s->tools.loop = c->loop;
    s->tools.disk = &s->disk;
    s->tools.registries = c->registries;
    memcpy(s->tools.uid, c->fetcher, sizeof s->tools.uid);
    s->disk.gid = c->fetcher[0];
    s->tools.max_bytes = c->max_bytes ? c->max_bytes : UINT64_C(64) << 30;
    s->tools.timeout_ms = c->timeout_ms ? c->timeout_ms : 3600000;
    if (strlen(c->dir) >= sizeof s->disk.dir || strlen(auth) >= sizeof s->tools.authfile) {
        err_set(e, ERR_TOO_LARGE, "the folder of images has more than %zu characters",
                sizeof s->disk.dir - 1);
        return NULL;
    }
    memcpy(s->disk.dir, c->dir, strlen(c->dir) + 1);
    memcpy(s->tools.authfile, auth, strlen(auth) + 1);
    if (find_tools(&s->tools, &s->arena, e) < 0 || image_disk_open(&s->disk, e) < 0)
        return NULL;
    empty_trash(s);
    prune(s); /* the bound may be another now */
    return TAKE(s);
}

static void unlink_want(struct image_want *w)
{
    for (struct image_want **p = &w->store->wants; *p; p = &(*p)->next)
        if (*p == w) {
            *p = w->next;
            break;
        }
    loop_unwatch(w->soon);
    free(w);
}

static void shared_free(struct shared *sh)
{
    for (struct shared **p = &sh->store->at_work; *p; p = &(*p)->next)
        if (*p == sh) {
            *p = sh->next;
            break;
        }
    image_fetch_stop(sh->fetch);
    free(sh->ref);
    free(sh);
}

struct image_store *image_close(struct image_store *s)
{
    if (!s)
        return NULL;
    while (s->wants)
        unlink_want(s->wants);
    while (s->at_work)
        shared_free(s->at_work);
    tool_stop(s->remover);
    arena_free(&s->arena);
    free(s);
    return NULL;
}

void image_close_p(struct image_store **s)
{
    *s = image_close(*s);
}

/* ---- opening with the rights of a user ---- */

/* The raw calls change this thread alone; the C library's would change all of them.  The kernel
 * takes our rights over other people's files away with the file system uid. */
static int open_as(const struct engine_user *u, const char *path, int flags)
{
    gid_t ours[GROUPS_MAX];
    int n_ours = getgroups(GROUPS_MAX, ours);
    if (n_ours < 0 || u->n_groups > GROUPS_MAX ||
        syscall(SYS_setgroups, (size_t)u->n_groups, u->groups) < 0)
        return -1;
    syscall(SYS_setfsgid, u->gid);
    syscall(SYS_setfsuid, u->uid);
    int fd = open(path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC), error = errno;
    syscall(SYS_setfsuid, geteuid());
    syscall(SYS_setfsgid, getegid());
    if (syscall(SYS_setgroups, (size_t)n_ours, ours) < 0)
        abort(); /* never go on with somebody else's rights */
    errno = error;
    return fd;
}

static int cannot_open(const char *path, int error, struct err *e)
{
    enum err_code code = error == ENOENT ? ERR_NOT_FOUND : ERR_DENIED;
    return err_set(e, code, "cannot open the image '%s' as its user: %s", path, strerror(error));
}

/* A file that changed is another image: what tells it is in the stamp. */
static int open_source(const struct image_ref *r, const struct engine_user *u,
                       char stamp[static 96], int *out_fd, struct err *e)
{
    char index[sizeof r->name + 16];
    struct stat st;
    bool folder = r->kind == IMAGE_OCI;
    AUTO(file_close_p) int fd = open_as(u, r->name, folder ? O_RDONLY | O_DIRECTORY : O_RDONLY);
    if (fd < 0)
        return cannot_open(r->name, errno, e);
    snprintf(index, sizeof index, "%s/index.json", r->name);
    AUTO(file_close_p) int index_fd = folder ? open_as(u, index, O_RDONLY) : -1;
    if (folder && index_fd < 0)
        return cannot_open(index, errno, e);
    if (fstat(folder ? index_fd : fd, &st) < 0 || !S_ISREG(st.st_mode))
        return err_set(e, ERR_INVALID, "'%s' is not a file", folder ? index : r->name);
    snprintf(stamp, 96, "%llx.%llx.%lld.%lld.%09ld", (unsigned long long)st.st_dev,
             (unsigned long long)st.st_ino, (long long)st.st_size, (long long)st.st_mtime,
             st.st_mtim.tv_nsec);
    *out_fd = fd;
    fd = -1;
    return 0;
}

/* ---- wanting one ---- */

static void answer(struct image_want *w)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct image_store *s = w->store;
    struct image img;
    struct err e = w->e;
    image_done_fn *done = w->done;
    void *ctx = w->ctx;
    bool ok = w->digest[0] && image_disk_load(&s->disk, w->digest, &a, &img, &e) == 0;
    if (ok)
        image_disk_touch(&s->disk, w->digest);
    unlink_want(w);
    done(ctx, ok ? &img : NULL, ok ? NULL : &e);
}

static void on_soon(void *ctx)
{
    answer(ctx);
}

static void answer_soon(struct image_want *w)
{
    w->shared = NULL;
    w->soon = loop_timer(w->store->tools.loop, on_soon, w);
    loop_timer_set(w->soon, 0, 0);
}

static bool waits_for(const struct image_store *s, const struct image_want *w,
                      const struct shared *sh)
{
    for (const struct image_want *x = s->wants; x; x = x->next)
        if (x == w)
            return x->shared == sh;
    return false;
}

/* Those who are told may cancel, themselves and others. */
static void on_progress(void *ctx, const char *text, uint64_t done, uint64_t total)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct shared *sh = ctx;
    struct image_store *s = sh->store;
    size_t n = 0;
    for (struct image_want *w = s->wants; w; w = w->next)
        n++;
    struct image_want **all = arena_array(&a, struct image_want *, n + 1);
    n = 0;
    for (struct image_want *w = s->wants; w; w = w->next)
        all[n++] = w;
    for (size_t i = 0; i < n; i++)
        if (waits_for(s, all[i], sh) && all[i]->progress)
            all[i]->progress(all[i]->ctx, str_of(text), done, total);
}

static void on_fetched(void *ctx, const char *digest, const struct err *e)
{
    struct shared *sh = ctx;
    struct image_store *s = sh->store;
    struct err mine;
    sh->fetch = NULL; /* gone by itself */
    if (digest && image_disk_remember(&s->disk, str_of(sh->ref), sh->stamp, digest, &mine) < 0)
        log_event(s->log, LOG_WARN_, "image.remember_failed", "why=%s", mine.msg);
    for (struct image_want *w = s->wants; w; w = w->next) {
        if (w->shared != sh)
            continue;
        if (digest)
            memcpy(w->digest, digest, sizeof w->digest);
        else
            w->e = *e;
        answer_soon(w);
    }
    shared_free(sh);
    empty_trash(s);
    prune(s);
}

static struct shared *find_shared(struct image_store *s, struct str ref, const char *stamp)
{
    for (struct shared *sh = s->at_work; sh; sh = sh->next)
        if (str_is(ref, sh->ref) && strcmp(sh->stamp, stamp) == 0)
            return sh;
    return NULL;
}

static struct shared *begin_fetch(struct image_store *s, struct image_fetch_what *what,
                                  const char *ref, const char *stamp, struct err *e)
{
    struct shared *sh = xcalloc(1, sizeof *sh);
    struct image_fetch_calls calls = { on_progress, on_fetched, sh };
    sh->store = s;
    sh->ref = xstrdup(ref);
    snprintf(sh->stamp, sizeof sh->stamp, "%s", stamp);
    sh->next = s->at_work;
    s->at_work = sh;
    what->number = s->fetches++;
    sh->fetch = image_fetch_begin(&s->tools, what, &calls, e);
    if (sh->fetch)
        return sh;
    shared_free(sh);
    return NULL;
}

static int look_up(struct image_store *s, struct str image, const struct engine_user *u,
                   struct image_want *w, struct err *e)
{
    struct image_ref r;
    char stamp[96] = "";
    AUTO(file_close_p) int source = -1;
    AUTO(buf_free) struct buf ref = BUF(2048);
    if (image_ref_parse(image, &r, e) < 0)
        return -1;
    image_ref_format(&r, &ref);
    if (buf_check(&ref, e) < 0)
        return -1;
    if (r.kind != IMAGE_DOCKER && open_source(&r, u, stamp, &source, e) < 0)
        return -1;
    if (image_disk_lookup(&s->disk, buf_str(&ref), stamp, w->digest))
        return 0;
    w->shared = find_shared(s, buf_str(&ref), stamp);
    if (w->shared)
        return 0;
    if (check_room(s, e) < 0)
        return -1;
    struct image_fetch_what what = { .ref = &r, .user = u, .source = source };
    source = -1; /* the fetch has it, or has closed it */
    w->shared = begin_fetch(s, &what, ref.p, stamp, e);
    return w->shared ? 0 : -1;
}

struct image_want *image_rootfs(struct image_store *s, struct str image,
                                const struct engine_user *user, image_progress_fn *progress,
                                image_done_fn *done, void *ctx)
{
    struct image_want *w = xcalloc(1, sizeof *w);
    *w = (struct image_want){
        .store = s, .progress = progress, .done = done, .ctx = ctx, .next = s->wants
    };
    s->wants = w;
    if (look_up(s, image, user, w, &w->e) < 0 || !w->shared)
        answer_soon(w);
    return w;
}

void image_cancel(struct image_want *w)
{
    struct image_store *s = w->store;
    struct shared *sh = w->shared;
    unlink_want(w);
    for (struct image_want *x = s->wants; x && sh; x = x->next)
        if (x->shared == sh)
            sh = NULL; /* somebody else waits for it */
    if (sh) {
        shared_free(sh);
        empty_trash(s);
    }
}

/* ---- mounting ---- */

static int make_dir(const char *path, struct err *e)
{
    if (mkdir(path, 0755) < 0 && errno != EEXIST)
        return err_set(e, ERR_UNAVAILABLE, "cannot make folder '%s': %s", path, strerror(errno));
    return 0;
}

static bool is_mounted(const char *path)
{
    char above[IMAGE_PATH_MAX + 8];
    struct stat a, b;
    snprintf(above, sizeof above, "%s/..", path);
    return lstat(path, &a) == 0 && stat(above, &b) == 0 && a.st_dev != b.st_dev;
}

int image_mount(struct image_store *s, const char *digest, const char *scratch, const char *target,
                struct err *e)
{
    char full[IMAGE_DIGEST + 8], hex[IMAGE_DIGEST];
    char lower[IMAGE_PATH_MAX], upper[IMAGE_PATH_MAX], work[IMAGE_PATH_MAX];
    char options[4 * IMAGE_PATH_MAX];
    snprintf(full, sizeof full, "sha256:%.64s", digest);
    if (strlen(digest) != IMAGE_DIGEST - 1 || !image_digest_parse(str_of(full), hex) ||
        !image_disk_has(&s->disk, hex))
        return err_set(e, ERR_NOT_FOUND, "there is no image '%.80s' here", digest);
    /* These are separators in the options, and escaping them differs between kernels. */
    if (strlen(scratch) > 250 || strpbrk(scratch, ",:\\") || strpbrk(s->disk.dir, ",:\\"))
        return err_set(e, ERR_INVALID, "an image cannot be mounted over '%s'", scratch);
    image_disk_path(&s->disk, "rootfs", hex, "/root", lower);
    snprintf(upper, sizeof upper, "%s/upper", scratch);
    snprintf(work, sizeof work, "%s/work", scratch);
    if (make_dir(upper, e) < 0 || make_dir(work, e) < 0 || make_dir(target, e) < 0)
        return -1;
    image_disk_touch(&s->disk, hex);
    if (is_mounted(target))
        return 0;
    snprintf(options, sizeof options, "lowerdir=%s,upperdir=%s,workdir=%s", lower, upper, work);
    if (mount("overlay", target, "overlay", MS_NOSUID | MS_NODEV, options) < 0)
        return err_set(e, ERR_UNAVAILABLE, "cannot mount the image on '%s': %s", target,
                       strerror(errno));
    return 0;
}

int image_unmount(const char *target, struct err *e)
{
    while (is_mounted(target))
        if (umount2(target, MNT_DETACH) < 0)
            return err_set(e, ERR_UNAVAILABLE, "cannot unmount '%s': %s", target, strerror(errno));
    if (rmdir(target) < 0 && errno != ENOENT)
        return err_set(e, ERR_UNAVAILABLE, "cannot remove '%s': %s", target, strerror(errno));
    return 0;
}
