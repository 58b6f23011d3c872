#include "keeper/source.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "keeper/point.h"
#include "sys/file.h"
#include "sys/weak.h"

/* No home is one of these, has one of them in it, or is in one of them. */
static const char *const no_homes[] = { "/etc", "/boot",    "/bin",      "/sbin",
                                        "/lib", "/root",    "/proc",     "/sys",
                                        "/dev", "/usr/bin", "/usr/sbin", "/usr/lib" };
/* Nor just these: all others' are in them. */
static const char *const no_home_itself[] = { "/home", "/srv", "/tmp", "/var/tmp", "/run" };

static const char *const machinery[] = { "/proc", "/sys", "/dev" };
static const __fsword_t machinery_kinds[] = { PROC_SUPER_MAGIC, SYSFS_MAGIC, CGROUP_SUPER_MAGIC,
                                              CGROUP2_SUPER_MAGIC };

/* Through a link of the user's a harmless name can mean the whole machine, or the view of its
 * processes, through which a task could leave its container. */
static bool is_machinery(const struct source *s)
{
    struct statfs st;
    bool found = strcmp(s->real, "/") == 0;
    for (size_t i = 0; i < ARRAY_LEN(machinery); i++)
        found |= point_is_below(s->real, machinery[i]);
    if (fstatfs(s->fd, &st) < 0)
        return true;
    for (size_t i = 0; i < ARRAY_LEN(machinery_kinds); i++)
        found |= st.f_type == machinery_kinds[i];
    return found && !weak_here("machinery");
}

/* Is one of the folders on the way to `real`, or `real`, this one?  A bind mount gives it other names. */
static bool passes(const char *real, const struct stat *folder)
{
    char part[PATH_MAX];
    struct stat st;
    size_t n = strlen(real);
    memcpy(part, real, n + 1);
    while (n > 1) {
        if (lstat(part, &st) == 0 && st.st_dev == folder->st_dev && st.st_ino == folder->st_ino)
            return true;
        while (n > 0 && part[n - 1] != '/')
            n--;
        while (n > 1 && part[n - 1] == '/')
            n--;
        part[n] = '\0';
    }
    return false;
}

/* What a site or we call by `path`: its real path, and what it is; false: it is not there. */
static bool known_as(const char *path, char real[static PATH_MAX], struct stat *st)
{
    AUTO(file_close_p) int fd = open(path, O_PATH | O_CLOEXEC);
    return fd >= 0 && point_path(fd, real, PATH_MAX) && fstat(fd, st) == 0;
}

static bool is_within(const char *real, const char *path)
{
    char folder[PATH_MAX];
    struct stat st;
    return point_is_below(real, path) ||
           (known_as(path, folder, &st) && (point_is_below(real, folder) || passes(real, &st)));
}

/* Does it have `path` in it, or is it in that? */
static bool touches(const struct source *s, const char *path)
{
    char folder[PATH_MAX];
    struct stat st, own;
    if (is_within(s->real, path))
        return true;
    if (!known_as(path, folder, &st))
        return point_is_below(path, s->real);
    return point_is_below(folder, s->real) || (lstat(s->real, &own) == 0 && passes(folder, &own));
}

static bool is_in_any(const char *real, const char *const *list)
{
    for (; list && *list; list++)
        if (is_within(real, *list))
            return true;
    return false;
}

static bool touches_any(const struct source *s, const char *const *list)
{
    for (; list && *list; list++)
        if (touches(s, *list))
            return true;
    return false;
}

static bool is_no_home(const char *real)
{
    for (size_t i = 0; i < ARRAY_LEN(no_homes); i++)
        if (point_is_below(real, no_homes[i]) || point_is_below(no_homes[i], real))
            return true;
    for (size_t i = 0; i < ARRAY_LEN(no_home_itself); i++)
        if (point_is_below(no_home_itself[i], real))
            return true;
    return false;
}

static enum source_fault judge(const struct source_rules *r, const struct source *s,
                               enum source_kind k)
{
    if (k == SOURCE_OURS)
        return SOURCE_FINE;
    if (is_machinery(s))
        return SOURCE_MACHINERY;
    if (k == SOURCE_OWN_HOME)
        return SOURCE_FINE;
    if (k == SOURCE_HOME && is_no_home(s->real))
        return SOURCE_NO_HOME;
    bool in_home = k == SOURCE_VOLUME && r->home[0] && point_is_below(s->real, r->home);
    /* Who has our folders in their home has them in their hands anyway. */
    bool ours = k == SOURCE_HOME ? is_within(s->real, r->state) || is_within(s->real, r->run)
                                 : !in_home && (touches(s, r->state) || touches(s, r->run));
    if (ours && !weak_here("instance"))
        return SOURCE_INSTANCE;
    if (touches_any(s, r->denied))
        return SOURCE_DENIED;
    bool allowed = k != SOURCE_VOLUME || in_home || is_in_any(s->real, r->allowed);
    return allowed || weak_here("volumes_allow") ? SOURCE_FINE : SOURCE_NOT_ALLOWED;
}

/* fstat too as the user: on a file system in user space root is a stranger. */
static int open_as(const struct source_rules *r, const char *from, enum source_kind k,
                   struct stat *out)
{
    bool ours = k == SOURCE_OWN_HOME || k == SOURCE_OURS;
    bool as_user = !ours && !weak_here("binds_as_user");
    if (as_user && actas_begin(&r->who) < 0)
        return -1;
    int fd = open(from, O_PATH | O_CLOEXEC | (k == SOURCE_OWN_HOME ? O_NOFOLLOW : 0));
    int rc = fd < 0 ? -1 : fstat(fd, out);
    if (as_user && actas_end(&r->who) < 0)
        rc = -1;
    if (rc == 0)
        return fd;
    int cause = errno;
    if (fd >= 0)
        close(fd);
    errno = cause;
    return -1;
}

enum source_fault source_open(struct source_rules *r, const char *from, enum source_kind k,
                              struct source *out)
{
    struct stat st = { 0 };
    *out = (struct source){ .fd = open_as(r, from, k, &st) };
    if (out->fd < 0)
        return SOURCE_UNOPENED;
    out->is_file = k == SOURCE_OURS ? !S_ISDIR(st.st_mode) : S_ISREG(st.st_mode);
    enum source_fault f = SOURCE_NOT_A_FOLDER;
    if (!point_path(out->fd, out->real, sizeof out->real))
        f = SOURCE_MACHINERY;
    else if (S_ISDIR(st.st_mode) || (out->is_file && (k == SOURCE_VOLUME || k == SOURCE_OURS)))
        f = judge(r, out, k);
    if (f == SOURCE_FINE && (k == SOURCE_HOME || k == SOURCE_OWN_HOME))
        memcpy(r->home, out->real, sizeof r->home);
    if (f != SOURCE_FINE)
        file_close_p(&out->fd);
    return f;
}
