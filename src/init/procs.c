#include "init/procs.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define PROCS_MAX 65536u

struct proc {
    pid_t pid, parent, group, session;
    bool is_ours;
};

struct procs {
    struct proc *v;
    size_t n, cap;
};

static void procs_free(struct procs *p)
{
    free(p->v);
}

static void close_p(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

static void closedir_p(DIR **d)
{
    if (*d)
        closedir(*d);
}

void procs_adopt(void)
{
    if (getpid() != 1)
        prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* Does /proc show our pid namespace, or that of somebody else? */
static bool proc_is_ours(void)
{
    char link[32], mine[32];
    ssize_t n = readlink("/proc/self", link, sizeof link);
    int want = snprintf(mine, sizeof mine, "%d", (int)getpid());
    return n == want && memcmp(link, mine, (size_t)n) == 0;
}

/* "17 (any (name) at all) S parent group session …"; false when it has gone. */
static bool read_proc(const char *number, struct proc *out)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%.16s/stat", number);
    AUTO(close_p) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (n <= 0)
        return false;
    text[n] = '\0';
    const char *after_name = strrchr(text, ')');
    long v[4] = { strtol(text, NULL, 10) };
    if (!after_name || strlen(after_name) < 4)
        return false;
    char *at = text + (after_name - text) + 4; /* ") S " */
    for (size_t i = 1; i < ARRAY_LEN(v); i++)
        v[i] = strtol(at, &at, 10);
    *out = (struct proc){
        .pid = (pid_t)v[0], .parent = (pid_t)v[1], .group = (pid_t)v[2], .session = (pid_t)v[3]
    };
    return out->pid > 0;
}

static int by_pid(const void *a, const void *b)
{
    pid_t x = ((const struct proc *)a)->pid, y = ((const struct proc *)b)->pid;
    return (x > y) - (x < y);
}

static bool has_marked_parent(const struct procs *all, const struct proc *p, pid_t root)
{
    struct proc key = { .pid = p->parent };
    if (p->parent == root)
        return true;
    const struct proc *parent = bsearch(&key, all->v, all->n, sizeof key, by_pid);
    return parent && parent->is_ours;
}

/* Marks what descends from `root`, but ourselves. */
static void mark_below(struct procs *all, pid_t root)
{
    for (bool found = true; found;) { /* children of those found in the last round */
        found = false;
        for (size_t i = 0; i < all->n; i++) {
            struct proc *q = &all->v[i];
            if (q->is_ours || q->pid == getpid() || !has_marked_parent(all, q, root))
                continue;
            q->is_ours = found = true;
        }
    }
}

/* Every process there is, ours marked; none when /proc cannot tell. */
static struct procs look_around(void)
{
    struct procs all = { 0 };
    bool is_first = getpid() == 1;
    struct dirent *entry;
    struct proc p;
    AUTO(closedir_p) DIR *d = proc_is_ours() ? opendir("/proc") : NULL;
    while (d && all.n < PROCS_MAX && (entry = readdir(d)))
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' && read_proc(entry->d_name, &p)) {
            vec_grow(all.v, all.n, all.cap);
            all.v[all.n++] = p;
        }
    if (all.n > 0)
        qsort(all.v, all.n, sizeof *all.v, by_pid);
    /* As process 1 it is safer to find those that are not ours: a visitor's parent is outside and
     * has no number here.  One whose parent ended while we looked is then taken for ours. */
    mark_below(&all, is_first ? 0 : getpid());
    for (size_t i = 0; is_first && i < all.n; i++)
        all.v[i].is_ours = !all.v[i].is_ours && all.v[i].pid != 1;
    return all;
}

static bool is_among(pid_t pid, const pid_t *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (list[i] == pid)
            return true;
    return false;
}

static int by_number(const void *a, const void *b)
{
    pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;
    return (x > y) - (x < y);
}

void procs_signal(int signo, pid_t first, const pid_t *not_sessions, size_t n)
{
    AUTO(procs_free) struct procs all = look_around();
    if (all.n == 0 && getpid() == 1) { /* blind: better one too many than one too few */
        kill(-1, signo);
        return;
    }
    kill(-first, signo);
    AUTO(free_p) pid_t *groups = xcalloc(all.n + 1, sizeof *groups);
    size_t n_groups = 0;
    for (size_t i = 0; i < all.n; i++) {
        const struct proc *p = &all.v[i];
        if (p->is_ours && p->group > 0 && p->group != first &&
            !is_among(p->session, not_sessions, n))
            groups[n_groups++] = p->group;
    }
    qsort(groups, n_groups, sizeof *groups, by_number);
    for (size_t i = 0; i < n_groups; i++)
        if (i == 0 || groups[i] != groups[i - 1])
            kill(-groups[i], signo);
}

void procs_kill_session(pid_t session)
{
    AUTO(procs_free) struct procs all = look_around();
    kill(-session, SIGKILL);
    for (size_t i = 0; i < all.n; i++)
        if (all.v[i].is_ours && all.v[i].session == session)
            kill(all.v[i].pid, SIGKILL);
}

void procs_kill_all(pid_t first, bool spare_visitors)
{
    if (getpid() == 1 && !(spare_visitors && proc_is_ours())) {
        kill(-1, SIGKILL); /* all of the namespace but ourselves, at once */
        return;
    }
    AUTO(procs_free) struct procs all = look_around();
    if (all.n == 0 && first > 0)
        kill(-first, SIGKILL);
    for (size_t i = 0; i < all.n; i++) {
        const struct proc *p = &all.v[i];
        if (!p->is_ours)
            continue;
        /* A whole group dies at once, so that it cannot outrun us by forking. */
        if (p->group > 0 && p->group != getpgrp())
            kill(-p->group, SIGKILL);
        kill(p->pid, SIGKILL);
    }
}
