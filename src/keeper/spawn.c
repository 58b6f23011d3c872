#include "keeper/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sys/file.h"

#define FIRST_FD 3

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

/* As root this is found out inside (compose.h). */
static bool is_folder(const char *path)
{
    int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static void tell_busy(void *ctx, uint32_t index)
{
    const struct spawn_report r = { .step = SPAWN_BUSY, .trouble.index = index };
    /* A parent that has gone hears of nothing; then this goes on all the same. */
    ssize_t n = write(*(const int *)ctx, &r, sizeof r);
    (void)n;
}

/* 1: begin in the other folder. */
static int prepare(const struct spawn_want *w, struct spawn_report *r, int report)
{
    if (w->compose)
        return compose_make(w->compose, tell_busy, &report, &r->trouble);
    if (!w->look || is_folder(w->look))
        return 0;
    r->trouble = (struct compose_trouble){ .fault = COMPOSE_WORKDIR, .cause = errno };
    bool other = w->look_else && is_folder(w->look_else);
    return other ? 1 : -1;
}

static int place_fds(const struct spawn_want *w)
{
    int high[SPAWN_FDS];
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null < 0 || dup2(null, 0) < 0 || dup2(w->out_fd, 1) < 0 || dup2(w->out_fd, 2) < 0)
        return -1;
    for (int i = 0; i < SPAWN_FDS; i++) {
        high[i] = w->fd[i] < 0 ? -1 : fcntl(w->fd[i], F_DUPFD_CLOEXEC, SPAWN_HIGH_FD);
        if (w->fd[i] >= 0 && high[i] < 0)
            return -1;
    }
    for (int i = 0; i < SPAWN_FDS; i++)
        if (high[i] < 0)
            close(FIRST_FD + i);
        else if (dup2(high[i], FIRST_FD + i) < 0)
            return -1;
    return 0;
}

void spawn_default_signals(void)
{
    sigset_t none;
    for (int s = 1; s < NSIG; s++)
        signal(s, SIG_DFL); /* what cannot be set fails, and is as it should be */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Returns where it failed, with errno; does not return when all is well. */
static enum spawn_step become(const struct spawn_want *w, struct spawn_report *r, int report)
{
    setsid();
    spawn_default_signals();
    umask(022);
    if (join_groups(w) < 0)
        return SPAWN_JOIN;
    if (w->compose ? take_mounts(w) < 0 : w->hide && cover_mount(w) < 0)
        return SPAWN_MOUNTS;
    int other = prepare(w, r, report);
    if (other < 0)
        return SPAWN_COMPOSE;
    const char *cwd = other && w->cwd ? w->look_else : w->cwd;
    if (chdir(cwd ? cwd : "/") < 0)
        return SPAWN_CWD;
    if (place_fds(w) < 0)
        return SPAWN_HANDOVER;
    char *const *argv = (char *const *)(uintptr_t)(other ? w->argv_else : w->argv);
    char *const *env = (char *const *)(uintptr_t)w->env;
    if (w->program >= 0)
        execveat(w->program, "", argv, env, AT_EMPTY_PATH);
    execve(argv[0], argv, env);
    return SPAWN_EXEC;
}

int spawn_child(const struct spawn_want *w, struct spawned *out, struct err *e)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return err_set(e, ERR_UNAVAILABLE, "cannot make a pipe: %s", strerror(errno));
    AUTO(file_close_p) int read_end = ends[0], write_end = ends[1];
    /* place_fds would run over a report that lies among 3 … 8. */
    AUTO(file_close_p) int report = fcntl(write_end, F_DUPFD_CLOEXEC, SPAWN_HIGH_FD);
    if (report < 0)
        return err_set(e, ERR_UNAVAILABLE, "cannot copy a descriptor: %s", strerror(errno));
    pid_t pid = fork();
    if (pid == 0) {
        struct spawn_report r = { 0 };
        r.step = become(w, &r, report);
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

/* --- what the parent makes of it --- */

static bool is_theirs(int cause)
{
    return cause == EACCES || cause == EPERM || cause == ENOENT || cause == ENOTDIR ||
           cause == ELOOP || cause == EROFS || cause == EISDIR || cause == ENAMETOOLONG;
}

static enum err_code code_of(int cause)
{
    bool denied = cause == EACCES || cause == EPERM || cause == EROFS;
    if (cause == ENAMETOOLONG)
        return ERR_INVALID;
    return denied ? ERR_DENIED : is_theirs(cause) ? ERR_NOT_FOUND : ERR_UNAVAILABLE;
}

static void say_source(const struct compose_mount *m, const struct compose_trouble *t,
                       struct err *e)
{
    bool known = t->text[0] && strcmp(t->text, m->from) != 0;
    const char *to = known ? ", which is '" : "", *real = known ? t->text : "",
               *end = known ? "'" : "";
    switch (t->source) {
    case SOURCE_FINE:
    case SOURCE_UNOPENED:
        err_set(e, code_of(t->cause), "cannot give '%s' to the job: %s", m->from,
                strerror(t->cause));
        err_hint(e, "its user must be able to reach that path on this machine");
        return;
    case SOURCE_NOT_A_FOLDER:
        err_set(e, ERR_NOT_FOUND, "cannot give '%s' to the job: %s", m->from, strerror(ENOTDIR));
        err_hint(e, "folders and plain files can be given");
        return;
    case SOURCE_MACHINERY:
        err_set(e, ERR_DENIED, "cannot give '%s' to the job: %s", m->from, strerror(EPERM));
        err_hint(e, "it is a part of the machine itself");
        return;
    case SOURCE_INSTANCE:
        err_set(e, ERR_DENIED, "'%s'%s%s%s cannot be given to a job: Nightshift has its own there",
                m->from, to, real, end);
        return;
    case SOURCE_DENIED:
        err_set(e, ERR_DENIED, "'%s'%s%s%s is not given to jobs here", m->from, to, real, end);
        err_hint(e, "an administrator named it in volumes_deny");
        return;
    case SOURCE_NOT_ALLOWED:
        err_set(e, ERR_DENIED, "'%s'%s%s%s is in no folder that jobs may be given (volumes_allow)",
                m->from, to, real, end);
        err_hint(e, "own homes are; an administrator names others in volumes_allow");
        return;
    case SOURCE_NO_HOME:
        err_set(e, ERR_DENIED, "the home '%s'%s%s%s is a folder of the system", m->from, to, real,
                end);
        err_hint(e, "an administrator gives the account a home of its own");
        return;
    }
}

static void say_place(const struct compose_mount *m, const struct compose_trouble *t, struct err *e)
{
    if (t->cause == ELOOP) {
        err_set(e, ERR_DENIED, "no volume can be put at '%s': a link is on the way", m->at);
        err_hint(e, "name the folder that the link leads to");
        return;
    }
    err_set(e, code_of(t->cause), "no place for a volume can be made at '%s': %s", m->at,
            strerror(t->cause));
    if (is_theirs(t->cause))
        err_hint(e, "it lies in another folder: make it there first, or choose a new place");
}

static void say_workdir(const char *path, int cause, struct err *e)
{
    if (cause == ENOENT || cause == ENOTDIR)
        err_set(e, ERR_NOT_FOUND, "the working folder '%s' is not there inside the job", path);
    else
        err_set(e, code_of(cause), "cannot use the working folder '%s': %s", path, strerror(cause));
    err_hint(e, "it must exist on this machine and be open to the job's user");
}

static void say_trouble(const struct spawn_want *w, const struct compose_trouble *t, struct err *e)
{
    static const struct compose_mount none = { .from = "", .at = "" };
    const struct compose *c = w->compose;
    const struct compose_mount *m = c && t->index < c->n ? &c->mount[t->index] : &none;
    switch (t->fault) {
    case COMPOSE_FINE: break;
    case COMPOSE_SOURCE: say_source(m, t, e); return;
    case COMPOSE_PLACE: say_place(m, t, e); return;
    case COMPOSE_WORKDIR:
        say_workdir(c ? t->text : w->look_else ? w->look_else : w->look, t->cause, e);
        return;
    case COMPOSE_RESERVED:
        err_set(e, ERR_DENIED, "'%s' is not a place for a volume", m->at);
        err_hint(e, "parts of ours are there");
        return;
    case COMPOSE_HOOKED:
        err_set(e, ERR_DENIED, "'%s' is not a place for a volume in an image with GPUs", m->at);
        err_hint(e, "the GPU driver puts its files there");
        return;
    case COMPOSE_IMAGE_LINK:
        err_set(e, ERR_INVALID, "the image has no folder '%s': %s", t->text, strerror(t->cause));
        err_hint(e, "parts of ours go there; it may not be a link or a file");
        return;
    case COMPOSE_ATTACH:
        err_set(e, ERR_UNAVAILABLE, "cannot mount '%s' at '%s': %s", m->from, m->at,
                strerror(t->cause));
        return;
    case COMPOSE_ROOT: break;
    }
    err_set(e, ERR_UNAVAILABLE, "cannot put the job's root together: %s", strerror(t->cause));
}

/* false: the child runs its program, or has ended. */
static bool read_last(struct spawned *s)
{
    struct spawn_report r;
    ssize_t n;
    while ((n = read(s->report, &r, sizeof r)) == (ssize_t)sizeof r) {
        s->last = r;
        s->said = true;
    }
    return n < 0;
}

bool spawn_failure(const struct spawn_want *w, struct spawned *s, struct err *e)
{
    read_last(s);
    if (!s->said || s->last.step == SPAWN_BUSY)
        return false;
    const struct spawn_report r = s->last;
    const char *cause = strerror(r.cause);
    enum err_code code = code_of(r.cause);
    switch (r.step) {
    case SPAWN_BUSY: break;
    case SPAWN_JOIN: err_set(e, code, "cannot enter the control group: %s", cause); break;
    case SPAWN_MOUNTS: err_set(e, code, "cannot make a mount namespace: %s", cause); break;
    case SPAWN_COMPOSE: say_trouble(w, &r.trouble, e); break;
    case SPAWN_CWD: say_workdir(w->cwd ? w->cwd : "/", r.cause, e); break;
    case SPAWN_HANDOVER: err_set(e, code, "cannot hand over descriptors: %s", cause); break;
    case SPAWN_EXEC: err_set(e, code, "cannot run '%s': %s", w->argv[0], cause); break;
    }
    return true;
}

bool spawn_busy(const struct spawn_want *w, struct spawned *s, struct err *e)
{
    if (!read_last(s))
        return false;
    const struct compose *c = w->compose;
    bool known = c && s->said && s->last.step == SPAWN_BUSY && s->last.trouble.index < c->n;
    if (known)
        err_set(e, ERR_UNAVAILABLE, "'%s' does not answer", c->mount[s->last.trouble.index].from);
    else
        err_set(e, ERR_UNAVAILABLE, "the folder to begin in does not answer");
    err_hint(e, "it may be on a file server that is away; submit it again once that is back");
    return true;
}
