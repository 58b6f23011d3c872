#include "init/procs.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define PIDS_MAX 65536u
#define PATH_BYTES 64u

struct pids {
    pid_t *v;
    size_t n, cap;
};

static void pids_free(struct pids *p)
{
    free(p->v);
}

static void pids_add(struct pids *p, pid_t pid)
{
    if (p->n == PIDS_MAX)
        return;
    vec_grow(p->v, p->n, p->cap);
    p->v[p->n++] = pid;
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

/* The children of one thread: numbers with a blank after each. */
static void add_children(struct pids *p, pid_t pid, const char *tid)
{
    char path[PATH_BYTES], piece[4096];
    ssize_t n;
    long number = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%.16s/children", (int)pid, tid);
    AUTO(close_p) int fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && (n = read(fd, piece, sizeof piece)) > 0)
        for (ssize_t i = 0; i < n; i++) {
            bool digit = piece[i] >= '0' && piece[i] <= '9';
            if (!digit && number > 0)
                pids_add(p, (pid_t)number);
            number = digit ? number * 10 + (piece[i] - '0') : 0;
        }
}

/* Our descendants, parents before their children; none when /proc cannot tell. */
static struct pids descendants(void)
{
    struct pids p = { 0 };
    pid_t next = getpid();
    if (!proc_is_ours())
        return p;
    for (size_t seen = 0;; next = p.v[seen++]) {
        char path[PATH_BYTES];
        struct dirent *task;
        snprintf(path, sizeof path, "/proc/%d/task", (int)next);
        AUTO(closedir_p) DIR *d = opendir(path);
        while (d && (task = readdir(d)))
            if (task->d_name[0] != '.')
                add_children(&p, next, task->d_name);
        if (seen == p.n)
            return p;
    }
}

static int by_number(const void *a, const void *b)
{
    pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;
    return (x > y) - (x < y);
}

static bool is_among(pid_t pid, const pid_t *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (list[i] == pid)
            return true;
    return false;
}

void procs_signal(int signo, pid_t first, const pid_t *not_sessions, size_t n)
{
    AUTO(pids_free) struct pids all = descendants(), groups = { 0 };
    kill(-first, signo);
    for (size_t i = 0; i < all.n; i++) {
        pid_t group = getpgid(all.v[i]);
        if (group > 0 && group != first && !is_among(getsid(all.v[i]), not_sessions, n))
            pids_add(&groups, group);
    }
    if (groups.n > 0)
        qsort(groups.v, groups.n, sizeof *groups.v, by_number);
    for (size_t i = 0; i < groups.n; i++)
        if (i == 0 || groups.v[i] != groups.v[i - 1])
            kill(-groups.v[i], signo);
}

void procs_kill_session(pid_t session)
{
    AUTO(pids_free) struct pids all = descendants();
    kill(-session, SIGKILL);
    for (size_t i = 0; i < all.n; i++)
        if (getsid(all.v[i]) == session)
            kill(all.v[i], SIGKILL);
}

void procs_kill_all(void)
{
    if (getpid() == 1) {
        kill(-1, SIGKILL); /* all of the namespace but ourselves, at once */
        return;
    }
    AUTO(pids_free) struct pids all = descendants();
    for (size_t i = 0; i < all.n; i++) {
        pid_t group = getpgid(all.v[i]);
        /* A whole group dies at once, so that it cannot outrun us by forking. */
        if (group > 0 && group != getpgrp())
            kill(-group, SIGKILL);
        kill(all.v[i], SIGKILL);
    }
}
