#include "keeper/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <sched.h>
#include <signal.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "sys/file.h"
#include "sys/weak.h"

#define FIRST_FD 3

/* Where the child was when it failed. */
enum step {
    STEP_JOIN,
    STEP_MOUNTS,
    STEP_BIND,
    STEP_WORKDIR,
    STEP_FDS,
    STEP_EXEC
};

struct report {
    enum step step;
    int cause;
    uint32_t index; /* STEP_BIND */
};

static int join_groups(const struct spawn_want *w)
{
    for (int i = 0; i < w->n_join; i++)
        if (write(w->join_fd[i], "0", 1) != 1)
            return -1;
    return 0;
}

static int take_mounts(const struct spawn_want *w)
{
    if (unshare(CLONE_NEWNS) < 0 || mount("", "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
        return -1;
    /* Where it is not mounted there is nothing to hide. */
    if (w->hide && umount2(w->hide, MNT_DETACH) < 0 && errno != EINVAL && errno != ENOENT)
        return -1;
    if (mount("tmpfs", w->mnt, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=4m") < 0)
        return -1;
    return w->skeleton ? rootfs_build(w->skeleton) : 0;
}

static int write_file(const char *path, const char *text, size_t n)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t done = write(fd, text, n);
    close(fd);
    return done == (ssize_t)n ? 0 : -1;
}

/* "4711 4711 1": our own number as itself, and no other. */
static int map_self(const char *path, unsigned id)
{
    char digits[12], text[32];
    size_t n = 0, at = 0;
    do {
        digits[n++] = (char)('0' + id % 10);
        id /= 10;
    } while (id);
    for (int twice = 0; twice < 2; twice++) {
        for (size_t i = n; i > 0; i--)
            text[at++] = digits[i - 1];
        text[at++] = ' ';
    }
    text[at++] = '1';
    return write_file(path, text, at);
}

/* Without root a mount cannot be taken away, but covered: in a user namespace that maps only us. */
static int cover_mount(const struct spawn_want *w)
{
    unsigned uid = geteuid(), gid = getegid();
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0 ||
        write_file("/proc/self/setgroups", "deny", 4) < 0 ||
        map_self("/proc/self/uid_map", uid) < 0 || map_self("/proc/self/gid_map", gid) < 0)
        return -1;
    return mount("tmpfs", w->hide, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=4k");
}

/* For looking up paths only; the kernel takes the capabilities over files away meanwhile. */
static int act_as(uint32_t uid, uint32_t gid, const uint32_t *groups, uint32_t n)
{
    if (weak_here("binds_as_user"))
        return 0;
    setfsgid(gid);
    setfsuid(uid);
    _Static_assert(sizeof(gid_t) == sizeof *groups, "groups go to the kernel as they are");
    return syscall(SYS_setgroups, (size_t)n, groups) < 0 || (uint32_t)setfsuid((uid_t)-1) != uid ||
                   (uint32_t)setfsgid((gid_t)-1) != gid
             ? -1
             : 0;
}

static void fd_path(int fd, char out[static 32])
{
    static const char lead[] = "/proc/self/fd/";
    char digits[12];
    size_t n = 0, at = sizeof lead - 1;
    memcpy(out, lead, at);
    do {
        digits[n++] = (char)('0' + fd % 10);
        fd /= 10;
    } while (fd);
    while (n)
        out[at++] = digits[--n];
    out[at] = '\0';
}

/* Through a link of the user's a harmless name can mean the whole machine, or the view of its
 * processes, through which a task could leave its container. */
static bool is_machinery(int fd)
{
    static const char *const roots[] = { "/proc", "/sys", "/dev" };
    static const __fsword_t kinds[] = { PROC_SUPER_MAGIC, SYSFS_MAGIC, CGROUP_SUPER_MAGIC,
                                        CGROUP2_SUPER_MAGIC };
    char link[32], real[PATH_MAX];
    struct statfs st;
    fd_path(fd, link);
    ssize_t n = readlink(link, real, sizeof real - 1);
    if (n <= 0 || fstatfs(fd, &st) < 0)
        return true;
    real[n] = '\0';
    bool found = n == 1; /* "/" */
    for (size_t i = 0; i < ARRAY_LEN(roots); i++) {
        size_t len = strlen(roots[i]);
        found |= strncmp(real, roots[i], len) == 0 && (real[len] == '\0' || real[len] == '/');
    }
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        found |= st.f_type == kinds[i];
    return found && !weak_here("machinery");
}

/* An empty place of the kind of what comes onto it; nothing else can be given to a task. */
static int make_point(int fd, const struct spawn_bind *b)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -1;
    if (b->is_file ? !S_ISREG(st.st_mode) : !S_ISDIR(st.st_mode)) {
        errno = ENOTDIR;
        return -1;
    }
    if (!b->is_file)
        return mkdir(b->onto, 0700) == 0 || errno == EEXIST ? 0 : -1;
    int made = open(b->onto, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    return made < 0 ? -1 : close(made);
}

static int bind_all(const struct spawn_want *w, uint32_t *at)
{
    char from[32];
    for (uint32_t i = 0; i < w->n_binds; i++) {
        *at = i;
        bool ours = w->bind[i].is_ours;
        if (!ours && act_as(w->uid, w->gid, w->groups, w->n_groups) < 0)
            return -1;
        int fd = open(w->bind[i].from, O_PATH | O_CLOEXEC | (ours ? O_NOFOLLOW : 0));
        int cause = errno;
        if (act_as(0, 0, NULL, 0) < 0)
            return -1;
        errno = cause;
        if (fd >= 0 && is_machinery(fd)) {
            errno = EPERM;
            return -1;
        }
        if (fd < 0 || make_point(fd, &w->bind[i]) < 0)
            return -1;
        fd_path(fd, from);
        if (mount(from, w->bind[i].onto, NULL, MS_BIND | MS_REC, NULL) < 0)
            return -1;
        close(fd);
    }
    return 0;
}

static int try_workdir(const struct spawn_want *w)
{
    if (!w->workdir)
        return 0;
    int home = w->workdir_in_home ? open(w->bind[0].onto, O_PATH | O_CLOEXEC) : AT_FDCWD;
    if (home == -1 || (w->own_mounts && act_as(w->uid, w->gid, w->groups, w->n_groups) < 0))
        return -1;
    int fd = openat(home, w->workdir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int cause = errno;
    if (fd >= 0)
        close(fd);
    if (home >= 0)
        close(home);
    if (w->own_mounts && act_as(0, 0, NULL, 0) < 0)
        return -1;
    errno = cause;
    return fd < 0 ? -1 : 0;
}

static int place_fds(const struct spawn_want *w)
{
    int high[SPAWN_FDS];
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null < 0 || dup2(null, 0) < 0 || dup2(w->out_fd, 1) < 0 || dup2(w->out_fd, 2) < 0)
        return -1;
    for (int i = 0; i < SPAWN_FDS; i++)
        if ((high[i] = fcntl(w->fd[i], F_DUPFD_CLOEXEC, SPAWN_HIGH_FD)) < 0)
            return -1;
    for (int i = 0; i < SPAWN_FDS; i++)
        if (dup2(high[i], FIRST_FD + i) < 0)
            return -1;
    return 0;
}

static void default_signals(void)
{
    sigset_t none;
    for (int s = 1; s < NSIG; s++)
        signal(s, SIG_DFL); /* what cannot be set fails, and is as it should be */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Returns where it failed, with errno; does not return when all is well. */
static enum step become(const struct spawn_want *w, uint32_t *index)
{
    setsid();
    default_signals();
    umask(022);
    if (join_groups(w) < 0)
        return STEP_JOIN;
    if (w->own_mounts ? take_mounts(w) < 0 : w->hide && cover_mount(w) < 0)
        return STEP_MOUNTS;
    if (bind_all(w, index) < 0)
        return STEP_BIND;
    if (try_workdir(w) < 0)
        return STEP_WORKDIR;
    if (chdir(w->cwd ? w->cwd : "/") < 0)
        return STEP_WORKDIR;
    if (place_fds(w) < 0)
        return STEP_FDS;
    char *const *argv = (char *const *)(uintptr_t)w->argv;
    char *const *env = (char *const *)(uintptr_t)w->env;
    if (w->program >= 0)
        execveat(w->program, "", argv, env, AT_EMPTY_PATH);
    execve(w->argv[0], argv, env);
    return STEP_EXEC;
}

int spawn_child(const struct spawn_want *w, struct spawned *out, struct err *e)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_set(e, ERR_UNAVAILABLE, "cannot make a pipe: %s", strerror(errno));
    AUTO(file_close_p) int read_end = ends[0], write_end = ends[1];
    /* place_fds would run over a report that lies among 3 … 8. */
    AUTO(file_close_p) int report = fcntl(write_end, F_DUPFD_CLOEXEC, SPAWN_HIGH_FD);
    if (report < 0)
        return err_set(e, ERR_UNAVAILABLE, "cannot copy a descriptor: %s", strerror(errno));
    pid_t pid = fork();
    if (pid == 0) {
        struct report r = { 0 };
        r.step = become(w, &r.index);
        r.cause = errno;
        if (write(report, &r, sizeof r) < 0)
            _exit(126);
        _exit(127);
    }
    if (pid < 0)
        return err_set(e, ERR_UNAVAILABLE, "cannot make a process: %s", strerror(errno));
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (pidfd < 0) {
        int cause = errno;
        kill(pid, SIGKILL);
        return err_set(e, ERR_UNAVAILABLE, "cannot watch a process: %s", strerror(cause));
    }
    *out = (struct spawned){ .pid = pid, .pidfd = pidfd, .report = read_end };
    read_end = -1;
    return 0;
}

bool spawn_failure(const struct spawn_want *w, int report, struct err *e)
{
    struct report r;
    if (read(report, &r, sizeof r) != (ssize_t)sizeof r)
        return false;
    const char *cause = strerror(r.cause);
    bool theirs = r.cause == EACCES || r.cause == EPERM || r.cause == ENOENT ||
                  r.cause == ENOTDIR || r.cause == ELOOP;
    bool denied = r.cause == EACCES || r.cause == EPERM;
    enum err_code code = denied ? ERR_DENIED : theirs ? ERR_NOT_FOUND : ERR_UNAVAILABLE;
    switch (r.step) {
    case STEP_JOIN: err_set(e, code, "cannot enter the control group: %s", cause); break;
    case STEP_MOUNTS: err_set(e, code, "cannot make a mount namespace: %s", cause); break;
    case STEP_BIND:
        err_set(e, code, "cannot give '%s' to the job: %s",
                r.index < w->n_binds ? w->bind[r.index].from : "", cause);
        if (theirs)
            err_hint(e, "its user must be able to reach that path on this machine");
        break;
    case STEP_WORKDIR:
        err_set(e, code, "cannot use the working folder '%s': %s",
                w->workdir ? w->workdir
                : w->cwd   ? w->cwd
                           : "/",
                cause);
        err_hint(e, "it must exist on this machine and be open to the job's user");
        break;
    case STEP_FDS: err_set(e, code, "cannot hand over descriptors: %s", cause); break;
    case STEP_EXEC: err_set(e, code, "cannot run '%s': %s", w->argv[0], cause); break;
    }
    return true;
}
