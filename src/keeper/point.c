#include "keeper/point.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sys/file.h"
#include "sys/weak.h"

#define LINKS_MAX 16
#define AGAIN_MAX 1000 /* the kernel gives up on ".." when anybody moves a folder meanwhile */
#define NAME_BYTES 256

static int open_how(int from, const char *path, uint64_t flags, uint64_t resolve)
{
    struct open_how how = { .flags = O_PATH | O_CLOEXEC | flags, .resolve = resolve };
    long fd = -1;
    for (int i = 0; i < AGAIN_MAX; i++) {
        fd = syscall(SYS_openat2, from, path, &how, sizeof how);
        if (fd >= 0 || errno != EAGAIN)
            break;
    }
    return (int)fd;
}

static int open_inside(int root, const char *path, uint64_t flags)
{
    return open_how(root, path, flags, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
}

bool point_is_below(const char *path, const char *folder)
{
    size_t n = strlen(folder);
    while (n > 0 && folder[n - 1] == '/')
        n--;
    return strncmp(path, folder, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

bool point_path(int fd, char *out, size_t n)
{
    static const char lead[] = "/proc/self/fd/";
    char link[32], digits[12];
    size_t d = 0, at = sizeof lead - 1;
    unsigned v = (unsigned)fd;
    memcpy(link, lead, at);
    do {
        digits[d++] = (char)('0' + v % 10);
        v /= 10;
    } while (v);
    while (d)
        link[at++] = digits[--d];
    link[at] = '\0';
    ssize_t got = readlink(link, out, n);
    if (got <= 0 || (size_t)got >= n || out[0] != '/')
        return false;
    out[got] = '\0';
    return true;
}

/* The next name of a path; false at its end.  `name` is cut when it is too long for any file system. */
static bool next_name(const char **path, char name[static NAME_BYTES + 1])
{
    const char *p = *path + strspn(*path, "/");
    size_t n = strcspn(p, "/");
    if (n == 0)
        return false;
    size_t take = MIN(n, (size_t)NAME_BYTES);
    memcpy(name, p, take);
    name[take] = '\0';
    *path = p + n;
    return true;
}

static int too_long(void)
{
    errno = ENAMETOOLONG;
    return -1;
}

/* What was not found goes behind what was: names only. */
static int add_names(char out[static POINT_PATH_MAX], const char *rest)
{
    char name[NAME_BYTES + 1];
    size_t n = strlen(out);
    while (next_name(&rest, name)) {
        size_t len = strlen(name);
        if (strcmp(name, ".") == 0)
            continue;
        if (strcmp(name, "..") == 0) {
            errno = ENOENT;
            return -1;
        }
        if (n + len + 2 > POINT_PATH_MAX)
            return too_long();
        out[n++] = '/';
        memcpy(out + n, name, len + 1);
        n += len;
    }
    return 0;
}

/* The longest part of it that is there. */
static int open_longest(int root, char *path, size_t *out_n)
{
    size_t n = strlen(path);
    for (;;) {
        char cut = path[n];
        path[n] = '\0';
        int fd = open_inside(root, n ? path : "/", 0);
        path[n] = cut;
        *out_n = n;
        if (fd >= 0 || errno != ENOENT || n == 0)
            return fd;
        while (n > 0 && path[n - 1] != '/')
            n--;
        while (n > 0 && path[n - 1] == '/')
            n--;
    }
}

int point_real(int root, const char *path, char out[static POINT_PATH_MAX])
{
    char copy[POINT_PATH_MAX], top[POINT_PATH_MAX], real[POINT_PATH_MAX];
    size_t n = strlen(path), there;
    if (n >= sizeof copy)
        return too_long();
    memcpy(copy, path, n + 1);
    AUTO(file_close_p) int fd = open_longest(root, copy, &there);
    if (fd < 0)
        return -1;
    if (!point_path(root, top, sizeof top) || !point_path(fd, real, sizeof real) ||
        !point_is_below(real, top)) {
        errno = ENOENT;
        return -1;
    }
    size_t lead = strcmp(top, "/") == 0 ? 0 : strlen(top);
    memmove(out, real + lead, strlen(real + lead) + 1);
    if (strcmp(out, "/") == 0)
        out[0] = '\0';
    if (add_names(out, path + there) < 0)
        return -1;
    if (!out[0])
        memcpy(out, "/", 2);
    return 0;
}

/* true: it is a link, and `path` is where it says now. */
static bool follow(int root, char path[static POINT_PATH_MAX])
{
    char to[POINT_PATH_MAX];
    AUTO(file_close_p) int fd = open_inside(root, path, O_NOFOLLOW);
    ssize_t n = fd < 0 ? -1 : readlinkat(fd, "", to, sizeof to - 1);
    if (n <= 0)
        return false;
    to[n] = '\0';
    size_t lead = to[0] == '/' ? 0 : (size_t)(strrchr(path, '/') + 1 - path);
    if (lead + (size_t)n >= POINT_PATH_MAX)
        return false;
    memcpy(path + lead, to, (size_t)n + 1);
    return true;
}

int point_real_through(int root, const char *path, char out[static POINT_PATH_MAX])
{
    char now[POINT_PATH_MAX];
    if (strlen(path) >= sizeof now)
        return too_long();
    memcpy(now, path, strlen(path) + 1);
    for (int i = 0; i < LINKS_MAX; i++)
        if (!follow(root, now))
            break;
    return point_real(root, now, out);
}

/* --- walking --- */

static uint64_t mount_of(int fd)
{
    struct statx st;
    bool known = statx(fd, "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT, STATX_MNT_ID, &st) == 0 &&
                 st.stx_mask & STATX_MNT_ID;
    return known ? st.stx_mnt_id : UINT64_MAX;
}

/* Where nothing may be written, a name that is missing is just missing. */
static int make(int parent, const char *name, bool is_file)
{
    if (!is_file)
        return mkdirat(parent, name, 0755);
    int fd =
        openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, (mode_t)0644);
    return fd < 0 ? -1 : close(fd);
}

static int step(int parent, const char *name, bool is_file)
{
    const uint64_t resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
    int fd = open_how(parent, name, 0, resolve);
    if (fd >= 0 || errno != ENOENT)
        return fd;
    if (make(parent, name, is_file) < 0 && errno != EEXIST)
        return -1;
    return open_how(parent, name, 0, resolve);
}

static int step_as(int parent, const char *name, bool is_file, const struct actas *who)
{
    if (actas_begin(who) < 0)
        return -1;
    int fd = step(parent, name, is_file);
    if (actas_end(who) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static int is_kind(int fd, bool is_file)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -1;
    if (S_ISDIR(st.st_mode) != is_file)
        return 0;
    errno = is_file ? EISDIR : ENOTDIR;
    return -1;
}

int point_open(int root, const char *place, bool is_file, const struct actas *who)
{
    char name[NAME_BYTES + 1];
    const char *rest = place;
    uint64_t own = mount_of(root);
    if (weak_here("place_links")) {
        int wherever = open_inside(root, place, 0);
        if (wherever >= 0)
            return wherever;
    }
    AUTO(file_close_p) int at = fcntl(root, F_DUPFD_CLOEXEC, 0);
    while (at >= 0 && next_name(&rest, name)) {
        bool last = rest[strspn(rest, "/")] == '\0';
        bool ours = weak_or("places_as_user", own != UINT64_MAX && mount_of(at) == own, true);
        int next = ours ? step(at, name, last && is_file) : step_as(at, name, last && is_file, who);
        int cause = errno;
        close(at);
        at = next;
        errno = cause;
    }
    if (at < 0 || is_kind(at, is_file) < 0)
        return -1;
    int found = at;
    at = -1;
    return found;
}

int point_look(int root, const char *path, const struct actas *who)
{
    if (actas_begin(who) < 0)
        return -1;
    int fd = open_inside(root, path, O_DIRECTORY);
    bool enters = fd >= 0 && fchdir(fd) == 0;
    int cause = errno;
    if (fd >= 0 && !enters)
        close(fd);
    errno = cause;
    if (actas_end(who) < 0 || !enters)
        return -1;
    return chdir("/") < 0 ? -1 : fd;
}
