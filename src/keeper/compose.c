#include "keeper/compose.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "keeper/graft.h"
#include "sys/file.h"
#include "sys/weak.h"

/* Nothing of the user's may cover these inside. */
static const char *const reserved[] = { "/proc", "/sys", "/dev", "/.nightshift" };

/* Where a driver's hooks write as root, in an image. */
static const char *const hooked[] = { "/etc", "/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin" };

/* Where ours goes, in an image: real folders. */
static const char *const own_places[] = { "/proc", "/sys", "/dev", "/etc", "/tmp", "/.nightshift" };

static bool is_users(const struct compose_mount *m)
{
    return m->kind == COMPOSE_HOME || m->kind == COMPOSE_OWN_HOME || m->kind == COMPOSE_VOLUME;
}

bool compose_is_reserved(const char *place)
{
    bool found = strcmp(place, "/") == 0;
    for (size_t i = 0; i < ARRAY_LEN(reserved); i++)
        found |= point_is_below(place, reserved[i]);
    return found && !weak_here("reserved");
}

static bool is_hooked(const char *place)
{
    for (size_t i = 0; i < ARRAY_LEN(hooked); i++)
        if (point_is_below(place, hooked[i]) || point_is_below(hooked[i], place))
            return true;
    return false;
}

static int fail(struct compose_trouble *out, enum compose_fault f, uint32_t index, const char *text)
{
    size_t n = MIN(strlen(text), sizeof out->text - 1);
    out->fault = f;
    out->cause = errno;
    out->index = index;
    memcpy(out->text, text, n);
    out->text[n] = '\0';
    return -1;
}

/* --- attaching --- */

static const struct actas ourselves = { .is_self = true };

static int attach(int from, int to, const struct compose_mount *m)
{
    bool system = m->kind == COMPOSE_SYSTEM;
    bool read_only = m->read_only && !(system && weak_here("readonly_system"));
    unsigned attributes = weak_or("nosuid", GRAFT_NOSUID, 0u) | weak_or("nodev", GRAFT_NODEV, 0u);
    return graft(from, to, attributes | (read_only ? GRAFT_RDONLY : 0));
}

static int attach_tmpfs(int to, const char *options)
{
    char path[POINT_PATH_MAX];
    if (!point_path(to, path, sizeof path))
        return -1;
    return mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV,
                 options); /* the root is still ours */
}

/* --- ours, while nobody else can change the root --- */

static int put_ours(struct compose *c, int root, uint32_t i, struct compose_trouble *out)
{
    struct compose_mount *m = &c->mount[i];
    struct source s = { .fd = -1 };
    bool tmpfs = m->kind == COMPOSE_TMPFS;
    enum source_fault f = tmpfs ? SOURCE_FINE : source_open(&c->rules, m->from, SOURCE_OURS, &s);
    AUTO(file_close_p) int from = s.fd;
    if (f != SOURCE_FINE) {
        out->source = f;
        return fail(out, COMPOSE_SOURCE, i, m->from);
    }
    if (point_real_through(root, m->at, m->place) < 0)
        return fail(out, COMPOSE_PLACE, i, m->at);
    /* An image's /var/tmp may be its /tmp. */
    if (m->kind == COMPOSE_SCRATCH && strcmp(m->place, m->at) != 0 && strcmp(m->place, "/tmp") == 0)
        return 0;
    AUTO(file_close_p) int to = point_open(root, m->place, s.is_file, &ourselves);
    if (to < 0)
        return fail(out, COMPOSE_PLACE, i, m->place);
    if (tmpfs ? attach_tmpfs(to, m->from) < 0 : attach(from, to, m) < 0)
        return fail(out, COMPOSE_ATTACH, i, m->at);
    return 0;
}

/* The runtime mounts on these by name. */
static int check_image(int root, struct compose_trouble *out)
{
    for (size_t i = 0; i < ARRAY_LEN(own_places); i++) {
        AUTO(file_close_p) int fd = point_open(root, own_places[i], false, &ourselves);
        if (fd < 0)
            return fail(out, COMPOSE_IMAGE_LINK, 0, own_places[i]);
    }
    return 0;
}

/* --- the user's --- */

static int find_places(struct compose *c, int root, struct compose_trouble *out)
{
    for (uint32_t i = 0; i < c->n; i++) {
        struct compose_mount *m = &c->mount[i];
        if (!is_users(m))
            continue;
        if (point_real(root, m->at, m->place) < 0)
            return fail(out, COMPOSE_PLACE, i, m->at);
        if (compose_is_reserved(m->place))
            return fail(out, COMPOSE_RESERVED, i, m->place);
        if (c->has_hooks && is_hooked(m->place))
            return fail(out, COMPOSE_HOOKED, i, m->place);
    }
    return 0;
}

static size_t depth(const char *path)
{
    size_t n = 0;
    for (; *path; path++)
        n += *path == '/';
    return n;
}

/* The next of the user's in order of depth, those of one depth as they were given; c->n: none. */
static uint32_t next_of_users(const struct compose *c, const bool *done)
{
    uint32_t best = c->n;
    for (uint32_t i = 0; i < c->n; i++)
        if (is_users(&c->mount[i]) && !done[i] &&
            (best == c->n || depth(c->mount[i].place) < depth(c->mount[best].place)))
            best = i;
    return best;
}

static int make_home(const struct compose *c, const char *path)
{
    const struct actas *who = &c->rules.who;
    if ((mkdir(c->homes, 0711) < 0 && errno != EEXIST) ||
        (mkdir(path, 0700) < 0 && errno != EEXIST))
        return -1;
    /* Also one that was made just before an earlier keeper was killed. */
    struct stat st;
    if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode))
        return -1;
    return st.st_uid == 0 ? lchown(path, who->uid, who->gid) : 0;
}

static bool is_missing(enum source_fault f)
{
    return f == SOURCE_NOT_A_FOLDER ||
           (f == SOURCE_UNOPENED && (errno == ENOENT || errno == ENOTDIR));
}

static enum source_fault open_users(struct compose *c, const struct compose_mount *m,
                                    struct source *s)
{
    static const enum source_kind kinds[] = { [COMPOSE_HOME] = SOURCE_HOME,
                                              [COMPOSE_OWN_HOME] = SOURCE_OWN_HOME,
                                              [COMPOSE_VOLUME] = SOURCE_VOLUME };
    if (m->kind == COMPOSE_OWN_HOME && make_home(c, m->from) < 0)
        return SOURCE_UNOPENED;
    enum source_fault f = source_open(&c->rules, m->from, kinds[m->kind], s);
    if (m->kind != COMPOSE_HOME || !m->instead || !is_missing(f))
        return f;
    return make_home(c, m->instead) < 0 ? SOURCE_UNOPENED
                                        : source_open(&c->rules, m->instead, SOURCE_OWN_HOME, s);
}

static int put_users(struct compose *c, int root, uint32_t i, struct compose_trouble *out)
{
    struct compose_mount *m = &c->mount[i];
    struct source s = { .fd = -1 };
    enum source_fault f = open_users(c, m, &s);
    AUTO(file_close_p) int from = s.fd;
    if (f != SOURCE_FINE) {
        out->source = f;
        return fail(out, COMPOSE_SOURCE, i, s.real);
    }
    AUTO(file_close_p) int to = point_open(root, m->place, s.is_file, &c->rules.who);
    if (to < 0)
        return fail(out, COMPOSE_PLACE, i, m->place);
    return attach(from, to, m) < 0 ? fail(out, COMPOSE_ATTACH, i, m->place) : 0;
}

/* Who makes an image says where it is worked in, and need not have made that. */
static void make_workdir(const struct compose *c, int root)
{
    char place[POINT_PATH_MAX];
    if (!c->is_image || !c->workdir || point_real(root, c->workdir, place) < 0)
        return;
    for (uint32_t i = 0; i < c->n; i++)
        if (is_users(&c->mount[i]) && point_is_below(place, c->mount[i].place))
            return;
    AUTO(file_close_p) int fd = point_open(root, place, false, &ourselves);
}

/* The runtime mounts these later, and they are the same for all. */
static bool is_runtimes(const char *path)
{
    return point_is_below(path, "/proc") || point_is_below(path, "/sys") ||
           point_is_below(path, "/dev");
}

static bool is_there(const struct compose *c, int root, const char *path)
{
    AUTO(file_close_p) int fd = is_runtimes(path) ? -1 : point_look(root, path, &c->rules.who);
    return fd >= 0 || is_runtimes(path);
}

static int check_workdir(const struct compose *c, int root, struct compose_trouble *out)
{
    if (!c->workdir || is_there(c, root, c->workdir))
        return 0;
    if (c->workdir_else && is_there(c, root, c->workdir_else))
        return 1;
    return fail(out, COMPOSE_WORKDIR, 0, c->workdir_else ? c->workdir_else : c->workdir);
}

/* --- all of it --- */

static int put_all_users(struct compose *c, int root, compose_busy_fn *busy, void *ctx,
                         struct compose_trouble *out)
{
    bool done[COMPOSE_MOUNTS_MAX] = { false };
    uint32_t i;
    /* A volume is judged by the home, whichever comes first. */
    for (i = 0; i < c->n && !c->rules.home[0]; i++) {
        struct source s = { .fd = -1 };
        if (c->mount[i].kind == COMPOSE_VOLUME || !is_users(&c->mount[i]))
            continue;
        busy(ctx, i);
        out->source = open_users(c, &c->mount[i], &s);
        if (out->source != SOURCE_FINE)
            return fail(out, COMPOSE_SOURCE, i, s.real);
        file_close_p(&s.fd);
    }
    while ((i = next_of_users(c, done)) < c->n) {
        done[i] = true;
        busy(ctx, i);
        if (put_users(c, root, i, out) < 0)
            return -1;
    }
    return 0;
}

int compose_make(struct compose *c, compose_busy_fn *busy, void *ctx, struct compose_trouble *out)
{
    *out = (struct compose_trouble){ 0 };
    AUTO(file_close_p) int root = open(c->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (c->n > COMPOSE_MOUNTS_MAX)
        errno = E2BIG;
    if (root < 0 || c->n > COMPOSE_MOUNTS_MAX)
        return fail(out, COMPOSE_ROOT, 0, c->root);
    if (c->is_image && check_image(root, out) < 0)
        return -1;
    for (uint32_t i = 0; i < c->n; i++) {
        if (is_users(&c->mount[i]))
            continue;
        if (put_ours(c, root, i, out) < 0)
            return -1;
    }
    if (find_places(c, root, out) < 0)
        return -1;
    make_workdir(c, root);
    if (put_all_users(c, root, busy, ctx, out) < 0)
        return -1;
    busy(ctx, c->n);
    return check_workdir(c, root, out);
}
