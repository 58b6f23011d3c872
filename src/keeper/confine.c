#include "keeper/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "keeper/confine_filter.h"
#include "keeper/graft.h"
#include "keeper/point.h"
#include "keeper/spawn.h"
#include "sys/file.h"
#include "sys/weak.h"

#define NAMESPACES                                                                                 \
    (CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)
#define ADDRESS_SPACE ((rlim_t)8 << 30)
#define CAP_BIT(cap) (UINT64_C(1) << (cap))

/* Owners, modes, set-id bits, device files and file capabilities are what an image is made of. */
#define KEPT                                                                                       \
    (CAP_BIT(CAP_CHOWN) | CAP_BIT(CAP_DAC_OVERRIDE) | CAP_BIT(CAP_FOWNER) | CAP_BIT(CAP_FSETID) |  \
     CAP_BIT(CAP_MKNOD) | CAP_BIT(CAP_SETFCAP))

static const struct actas ourselves = { .is_self = true };

/* ---- what it sees ---- */

static int put(int root, int from, const char *at, bool is_file, unsigned attributes)
{
    AUTO(file_close_p) int to = point_open(root, at, is_file, &ourselves);
    return to < 0 ? -1 : graft(from, to, GRAFT_NOSUID | GRAFT_NODEV | attributes);
}

static int put_file(int root, const char *path)
{
    AUTO(file_close_p) int from = open(path, O_PATH | O_CLOEXEC);
    return from < 0 ? -1 : put(root, from, path, true, GRAFT_RDONLY);
}

/* Newer versions of such programs look at their own descriptors there.  None but their own processes are in
 * it, and none of the kernel's settings; where the kernel cannot leave those out (before 5.8) there is no /proc. */
static int put_proc(int root)
{
    AUTO(file_close_p) int at = point_open(root, "/proc", false, &ourselves);
    char path[POINT_PATH_MAX];
    if (at < 0 || !point_path(at, path, sizeof path))
        return -1;
    if (mount("proc", path, "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY, "subset=pid") < 0)
        return errno == EINVAL ? 0 : -1;
    return 0;
}

/* Nobody else sees the tmpfs.  Both folders are held by descriptor, since it may lie over them. */
static int make_root(const struct confine *c, const char *program)
{
    AUTO(file_close_p) int read = open(c->read.from, O_PATH | O_DIRECTORY | O_CLOEXEC);
    AUTO(file_close_p) int write = open(c->write.from, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (read < 0 || write < 0 || mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("tmpfs", c->cover, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=1m") < 0)
        return -1;
    AUTO(file_close_p) int root = open(c->cover, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0 || put_file(root, program) < 0)
        return -1;
    for (const char *const *f = c->files; *f; f++)
        if (put_file(root, *f) < 0)
            return -1;
    if (put(root, read, c->read.at, false, GRAFT_RDONLY | GRAFT_NOEXEC) < 0 ||
        put(root, write, c->write.at, false, GRAFT_NOEXEC) < 0 || put_proc(root) < 0)
        return -1;
    return fchdir(root);
}

/* The old root comes to lie over the new one, and is taken off. */
static int enter_root(void)
{
    const unsigned long flags = MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC;
    if (syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
        return -1;
    return mount(NULL, "/", NULL, flags, NULL);
}

/* ---- what it may ---- */

static int set_limits(const struct confine *c)
{
    const struct {
        __rlimit_resource_t what;
        rlim_t most;
    } limits[] = {
        { RLIMIT_CORE, 0 },           { RLIMIT_FSIZE, c->max_file_bytes },
        { RLIMIT_AS, ADDRESS_SPACE }, { RLIMIT_NOFILE, 256 },
        { RLIMIT_MEMLOCK, 0 },        { RLIMIT_MSGQUEUE, 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
        struct rlimit now;
        if (getrlimit(limits[i].what, &now) < 0)
            return -1;
        /* Ours may be lower, and raising them is not always ours to do. */
        now.rlim_max = now.rlim_cur = MIN(now.rlim_max, limits[i].most);
        if (setrlimit(limits[i].what, &now) < 0)
            return -1;
    }
    return 0;
}

static int drop_power(void)
{
    struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct data[2] = { 0 };
    for (unsigned cap = 0; cap < 64; cap++)
        if (!(KEPT & CAP_BIT(cap)) && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0 && errno != EINVAL)
            return -1; /* EINVAL: the kernel has not so many */
    for (int half = 0; half < 2; half++)
        data[half].effective = data[half].permitted = (uint32_t)(KEPT >> (32 * half));
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 ||
        syscall(SYS_setgroups, (size_t)0, NULL) < 0 || syscall(SYS_capset, &head, data) < 0)
        return -1;
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

/* A child that asks to be killed with its parent asks too late when that is dead already: so it looks. */
static int end_with(int parent)
{
    struct pollfd p = { .fd = parent, .events = POLLIN };
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || poll(&p, 1, 0) < 0)
        return -1;
    if (p.revents)
        _exit(CONFINE_FAILED);
    /* Ours close by themselves; whoever's else do not. */
    return (int)syscall(SYS_close_range, 3u, ~0u, 0u);
}

/* ---- the child ---- */

static int place_fds(const struct confine_program *p)
{
    for (int i = 0; i < 3; i++)
        if (dup2(p->fd[i], i) < 0)
            return -1;
    return 0;
}

static void say(const char *text)
{
    ssize_t n = write(STDERR_FILENO, text, strlen(text));
    (void)n;
}

/* Asked before the file that says it is out of sight. */
struct walls {
    bool around, calls;
};

static const char *become(const struct confine *c, const struct confine_program *p,
                          const struct walls *w, int parent)
{
    setsid();
    spawn_default_signals();
    umask(022);
    if (place_fds(p) < 0)
        return "its descriptors";
    if (w->around && make_root(c, p->argv[0]) < 0)
        return "its root";
    if (w->around && enter_root() < 0)
        return "entering its root";
    if (set_limits(c) < 0)
        return "its limits";
    if (w->around && drop_power() < 0)
        return "its capabilities";
    if (end_with(parent) < 0)
        return "its end with ours";
    if (w->calls && confine_filter() < 0)
        return "its system calls";
    execve(p->argv[0], (char *const *)(uintptr_t)p->argv, (char *const *)(uintptr_t)p->env);
    return "executing it";
}

int confine_start(const struct confine *c, const struct confine_program *p, pid_t *out_pid,
                  int *out_pidfd, struct err *e)
{
    int pidfd = -1;
    const struct walls walls = { !weak_here("image_unpack"), !weak_here("image_calls") };
    AUTO(file_close_p) int parent = (int)syscall(SYS_pidfd_open, getpid(), 0);
    /* Not clone3, whose flags no filter can see: our unit's refuses it. */
    const unsigned long how = CLONE_PIDFD | SIGCHLD | (walls.around ? NAMESPACES : 0);
    long pid = parent < 0 ? -1 : syscall(SYS_clone, how, NULL, &pidfd, NULL, NULL);
    if (pid == 0) {
        const char *where = become(c, p, &walls, parent);
        const char *why = strerrordesc_np(errno);
        say("cannot shut the program in (");
        say(where);
        say("): ");
        say(why ? why : "unknown error");
        say("\n");
        _exit(CONFINE_FAILED);
    }
    if (pid < 0)
        return err_set(e, ERR_UNAVAILABLE, "cannot shut '%s' in: %s", p->argv[0], strerror(errno));
    *out_pid = (pid_t)pid;
    *out_pidfd = pidfd;
    return 0;
}
