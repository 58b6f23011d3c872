#include "keeper/rootfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sys/file.h"

#define DEPTH_MAX 64

/* Of the host, read-only.  /var/lib/sss and /run/nscd are how names of accounts are asked for. */
static const char *const host_folders[] = {
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/opt",
    "/nix",
    "/gnu",
    "/snap",
    "/var/lib/sss/pipes",
    "/var/lib/sss/mc",
    "/run/nscd",
};
_Static_assert(ARRAY_LEN(host_folders) <= ROOTFS_FOLDERS_MAX, "the plan holds them all");

/* Empty folders of the skeleton, parents first. */
static const char *const own_folders[] = {
    "/proc",      "/sys", "/dev",      "/tmp",      "/home",        "/mnt",
    "/root",      "/srv", "/var",      "/var/tmp",  "/var/lib",     "/var/log",
    "/var/cache", "/run", "/run/lock", "/run/user", "/.nightshift",
};

static const struct {
    const char *at, *to;
} own_links[] = { { "/var/run", "/run" }, { "/var/lock", "/run/lock" } };

void rootfs_look(const char *host_root, struct rootfs_plan *out)
{
    char path[512];
    struct stat st;
    *out = (struct rootfs_plan){ 0 };
    for (size_t i = 0; i < ARRAY_LEN(host_folders); i++) {
        struct rootfs_folder f = { .path = host_folders[i] };
        snprintf(path, sizeof path, "%s%s", host_root, f.path);
        if (lstat(path, &st) < 0)
            continue;
        if (S_ISLNK(st.st_mode) && readlink(path, f.link, sizeof f.link - 1) < 0)
            continue;
        if (S_ISLNK(st.st_mode) || S_ISDIR(st.st_mode))
            out->folder[out->n++] = f;
    }
}

/* Mount points of the host's folders are made by whoever mounts; the parents of all are there. */
const struct rootfs_entry *rootfs_skeleton(const struct rootfs_plan *p, const char *at,
                                           struct arena *a)
{
    struct rootfs_entry *list = arena_array(
        a, struct rootfs_entry, ARRAY_LEN(own_folders) + ARRAY_LEN(own_links) + p->n + 2);
    size_t n = 0;
    list[n++].path = arena_printf(a, "%s", at);
    for (size_t i = 0; i < ARRAY_LEN(own_folders); i++)
        list[n++].path = arena_printf(a, "%s%s", at, own_folders[i]);
    for (size_t i = 0; i < ARRAY_LEN(own_links); i++)
        list[n++] =
            (struct rootfs_entry){ arena_printf(a, "%s%s", at, own_links[i].at), own_links[i].to };
    for (size_t i = 0; i < p->n; i++)
        if (p->folder[i].link[0])
            list[n++] = (struct rootfs_entry){ arena_printf(a, "%s%s", at, p->folder[i].path),
                                               p->folder[i].link };
    return list;
}

int rootfs_build(const struct rootfs_entry *list)
{
    for (; list->path; list++) {
        int rc = list->link ? symlink(list->link, list->path) : mkdir(list->path, 0755);
        if (rc < 0 && errno != EEXIST)
            return -1;
    }
    return 0;
}

/* Refuses to enter what is mounted there, also a bind mount of the same file system. */
static int open_folder(int parent, const char *name)
{
    struct open_how how = {
        .flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
        .resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH,
    };
    return (int)syscall(SYS_openat2, parent, name, &how, sizeof how);
}

static int empty_folder(int fd, int depth);

static int remove_at(int parent, const char *name, int depth)
{
    if (unlinkat(parent, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return -1;
    if (unlinkat(parent, name, AT_REMOVEDIR) == 0)
        return 0;
    AUTO(file_close_p) int fd = errno == ENOTEMPTY ? open_folder(parent, name) : -1;
    if (fd < 0 || depth >= DEPTH_MAX || empty_folder(fd, depth + 1) < 0)
        return -1;
    return unlinkat(parent, name, AT_REMOVEDIR);
}

static int empty_folder(int fd, int depth)
{
    int again = dup(fd), rc = 0;
    DIR *d = again < 0 ? NULL : fdopendir(again);
    if (!d)
        return -1;
    for (struct dirent *it; (it = readdir(d));)
        if (strcmp(it->d_name, ".") != 0 && strcmp(it->d_name, "..") != 0 &&
            remove_at(fd, it->d_name, depth) < 0)
            rc = -1;
    closedir(d);
    return rc;
}

int tree_remove(const char *path, struct err *e)
{
    AUTO(free_p) char *folder = xstrdup(path);
    char *slash = strrchr(folder, '/');
    if (!slash || !slash[1])
        return err_set(e, ERR_INTERNAL, "'%s' is not a path to remove", path);
    *slash = '\0';
    AUTO(file_close_p)
    int parent = open(folder[0] ? folder : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (parent < 0 ? errno == ENOENT : remove_at(parent, slash + 1, 0) == 0)
        return 0;
    return err_set(e, ERR_UNAVAILABLE, "cannot remove all of '%s': %s", path, strerror(errno));
}
