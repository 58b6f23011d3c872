#include "keeper/stray.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "keeper/request.h"
#include "sys/file.h"

struct stray {
    struct strays *all;
    struct stray *next;
    pid_t pid;
    int pidfd;
    struct loop_watch *watch;
    char task[TASK_NAME_MAX + 1];
};

struct strays {
    struct loop *loop;
    struct cgroups *groups;
    struct stray *first;
    size_t n;
};

struct strays *strays_new(struct loop *l)
{
    struct strays *s = xcalloc(1, sizeof *s);
    s->loop = l;
    return s;
}

void strays_groups(struct strays *s, struct cgroups *c)
{
    s->groups = c;
}

static void drop(struct stray *one)
{
    struct stray **at = &one->all->first;
    while (*at != one)
        at = &(*at)->next;
    *at = one->next;
    one->all->n--;
    loop_unwatch(one->watch);
    file_close_p(&one->pidfd);
    free(one);
}

struct strays *strays_free(struct strays *s)
{
    while (s && s->first)
        drop(s->first);
    free(s);
    return NULL;
}

static void on_end(void *ctx, unsigned events)
{
    struct stray *one = ctx;
    int status;
    (void)events;
    if (waitpid(one->pid, &status, WNOHANG) == 0)
        return;
    cgroup_remove(one->all->groups, one->task); /* another of its name may use it: then it stays */
    drop(one);
}

void strays_add(struct strays *s, const char *task, pid_t pid, int pidfd)
{
    struct stray *one = xcalloc(1, sizeof *one);
    struct err e;
    *one = (struct stray){ .all = s, .next = s->first, .pid = pid, .pidfd = pidfd };
    snprintf(one->task, sizeof one->task, "%s", task);
    s->first = one;
    s->n++;
    one->watch = loop_fd(s->loop, pidfd, on_end, one, &e);
    if (!one->watch || loop_fd_set(one->watch, LOOP_READ, &e) < 0)
        abort(); /* libuv has no other reason than want of memory */
}

size_t strays_n(const struct strays *s)
{
    return s->n;
}
