#include "keeper/net_ns.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/parse.h"
#include "base/str.h"
#include "sys/file.h"

#define OWN_NS "/proc/thread-self/ns/net"

static void come_home(int *home)
{
    if (*home >= 0 && setns(*home, CLONE_NEWNET) < 0)
        abort();
    file_close_p(home);
}

static int leave_home(struct err *e)
{
    int fd = open(OWN_NS, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        err_set(e, ERR_UNAVAILABLE, "cannot open '%s': %s", OWN_NS, strerror(errno));
    return fd;
}

/* Enters the namespace at path; the result goes to come_home. */
static int enter(const char *path, struct err *e)
{
    int home = leave_home(e);
    AUTO(file_close_p) int ns = open(path, O_RDONLY | O_CLOEXEC);
    if (home < 0 || (ns >= 0 && setns(ns, CLONE_NEWNET) == 0))
        return home;
    err_set(e, ERR_UNAVAILABLE, "cannot enter network namespace '%s': %s", path, strerror(errno));
    file_close_p(&home);
    return -1;
}

static void set_link(int sock, const char *name, bool up)
{
    struct ifreq r = { 0 };
    snprintf(r.ifr_name, sizeof r.ifr_name, "%s", name);
    if (ioctl(sock, SIOCGIFFLAGS, &r) < 0)
        return;
    r.ifr_flags = (short)(up ? r.ifr_flags | IFF_UP : r.ifr_flags & ~IFF_UP);
    (void)ioctl(sock, SIOCSIFFLAGS, &r);
}

static void put_sysctl(const char *path, const char *value)
{
    AUTO(file_close_p) int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd >= 0 && write(fd, value, strlen(value)) < 0)
        return; /* a convenience that this kernel lacks */
}

static void furnish(void)
{
    AUTO(file_close_p) int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (sock >= 0)
        set_link(sock, "lo", true);
    put_sysctl("/proc/sys/net/ipv4/ping_group_range", "0 2147483647");
    put_sysctl("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
}

int net_ns_make(const char *path, struct err *e)
{
    if (net_ns_is_bound(path))
        return 0;
    AUTO(file_close_p) int file = open(path, O_CREAT | O_RDONLY | O_CLOEXEC, 0600);
    if (file < 0)
        return err_set(e, ERR_UNAVAILABLE, "cannot make '%s': %s", path, strerror(errno));
    AUTO(come_home) int home = leave_home(e);
    if (home < 0)
        return -1;
    if (unshare(CLONE_NEWNET) < 0) {
        err_set(e, ERR_UNAVAILABLE, "cannot make a network namespace: %s", strerror(errno));
        return err_hint(e, "see /proc/sys/user/max_net_namespaces");
    }
    furnish();
    if (mount(OWN_NS, path, NULL, MS_BIND, NULL) < 0)
        return err_set(e, ERR_UNAVAILABLE, "cannot bind a network namespace to '%s': %s", path,
                       strerror(errno));
    return 0;
}

bool net_ns_is_bound(const char *path)
{
    struct statfs s;
    return statfs(path, &s) == 0 && s.f_type == NSFS_MAGIC;
}

int net_ns_remove(const char *path, struct err *e)
{
    while (net_ns_is_bound(path))
        if (umount2(path, MNT_DETACH) < 0)
            return err_set(e, ERR_UNAVAILABLE, "cannot unmount '%s': %s", path, strerror(errno));
    if (unlink(path) < 0 && errno != ENOENT)
        return err_set(e, ERR_UNAVAILABLE, "cannot remove '%s': %s", path, strerror(errno));
    return 0;
}

/* Adds up the numbers that follow these words: "TCP: inuse 5 orphan 0 tw 2 alloc 9 mem 1".  Orphans
 * and what is allocated are counts of the whole machine, the others of the namespace. */
static int add_counts(const char *file, int sum)
{
    AUTO(buf_free) struct buf text = BUF(4096);
    struct err ignored;
    if (sum < 0 || file_read(file, 4096, &text, &ignored) < 0)
        return -1;
    struct str rest = buf_str(&text), word = { "", 0 };
    bool counted = false;
    while (str_next_word(&rest, &word)) {
        uint64_t v = 0;
        if (counted && parse_u64(word, INT32_MAX / 64, &v, &ignored) < 0)
            return -1;
        sum += (int)v;
        counted = str_is(word, "used") || str_is(word, "inuse") || str_is(word, "tw");
    }
    return sum;
}

int net_ns_sockets(const char *path)
{
    struct err ignored;
    AUTO(come_home) int home = enter(path, &ignored);
    if (home < 0)
        return -1;
    int sum = add_counts("/proc/thread-self/net/sockstat", 0);
    if (access("/proc/thread-self/net/sockstat6", R_OK) == 0) /* absent without IPv6 */
        sum = add_counts("/proc/thread-self/net/sockstat6", sum);
    return sum;
}

int net_ns_used(const char *const *paths, size_t n, bool *out_used, struct err *e)
{
    AUTO(free_p) struct stat *ns = xcalloc(n + 1, sizeof *ns);
    for (size_t i = 0; i < n; i++)
        if (stat(paths[i], &ns[i]) < 0)
            return err_set(e, ERR_UNAVAILABLE, "cannot look at '%s': %s", paths[i],
                           strerror(errno));
    DIR *proc = opendir("/proc");
    if (!proc)
        return err_set(e, ERR_UNAVAILABLE, "cannot read /proc: %s", strerror(errno));
    memset(out_used, 0, n * sizeof *out_used);
    for (struct dirent *d; (d = readdir(proc));) {
        char link[300];
        struct stat st;
        snprintf(link, sizeof link, "%s/ns/net", d->d_name);
        if (d->d_name[0] < '0' || d->d_name[0] > '9' || fstatat(dirfd(proc), link, &st, 0) < 0)
            continue; /* not a process, or one that has just ended */
        for (size_t i = 0; i < n; i++)
            out_used[i] |= st.st_ino == ns[i].st_ino && st.st_dev == ns[i].st_dev;
    }
    closedir(proc);
    return 0;
}

void net_bridge_set(const char *name, bool up)
{
    AUTO(file_close_p) int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (sock >= 0)
        set_link(sock, name, up);
}

void net_bridge_remove(const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "/sys/class/net/%s/brif", name);
    DIR *ports = opendir(path);
    if (!ports)
        return;
    size_t n = 0;
    for (struct dirent *d; (d = readdir(ports));)
        n += d->d_name[0] != '.';
    closedir(ports);
    AUTO(file_close_p) int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (n > 0 || sock < 0)
        return;
    set_link(sock, name, false); /* one that is up cannot be removed */
    (void)ioctl(sock, SIOCBRDELBR, name);
}
