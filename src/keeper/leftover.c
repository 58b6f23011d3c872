#include "keeper/leftover.h"

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "keeper/request.h"
#include "keeper/tell.h"
#include "node/gpu_process.h"
#include "sys/file.h"

#define PIDS_MAX 256   /* of one group, that are named */
#define FOUND_MAX 4096 /* GPU processes of one look */

/* Given to the thread and taken back whole: nobody shares it. */
struct look {
    const char *nvml;
    struct loop_watch *done;
    struct gpu_process *found;
    size_t n;
};

struct leftover {
    struct leftover_config c;
    struct look look;
    pthread_t thread;
    bool looking;
};

/* The number alone could be somebody else's by now: the descriptor is the process that was looked
 * at, if it still began when it did. */
static bool end_process(const struct gpu_process *p)
{
    struct gpu_process now;
    AUTO(file_close_p) int fd = (int)syscall(SYS_pidfd_open, p->pid, 0);
    if (fd < 0)
        return false;
    gpu_process_look("/proc", p->pid, &now);
    return !now.gone && now.start_ms == p->start_ms &&
           syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0) == 0;
}

static void report(struct leftover *l, const struct gpu_process *p, const char *task,
                   const char *gpu)
{
    struct tell_leftover t = {
        .pid = p->pid,
        .task = task,
        .owner = p->user,
        .command = p->command,
        .uid = p->uid,
        .gpu = gpu,
        .ended = l->c.end && end_process(p),
    };
    log_event(l->c.env->log, LOG_WARN_, "leftover", "pid=%d owner=%s task=%s gpu=%s ended=%d",
              t.pid, t.owner, task ? task : "", gpu ? gpu : "", t.ended);
    tell_leftover(l->c.env, &t);
}

/* --- control groups --- */

static void look_at_group(void *ctx, const char *name)
{
    struct leftover *l = ctx;
    if (!task_name_valid(str_of(name)) || l->c.alive(l->c.ctx, name))
        return;
    pid_t pids[PIDS_MAX];
    size_t n = cgroup_pids(l->c.env->cgroups, name, pids, PIDS_MAX);
    for (size_t i = 0; i < MIN(n, (size_t)PIDS_MAX); i++) {
        struct gpu_process p;
        gpu_process_look("/proc", pids[i], &p);
        if (!p.gone)
            report(l, &p, name, NULL);
    }
    if (n && l->c.end)
        cgroup_kill(l->c.env->cgroups, name);
    if (n == 0)
        cgroup_remove(l->c.env->cgroups, name);
}

/* --- GPUs --- */

static void add_found(struct look *k, const struct gpu_process *list, size_t n)
{
    for (size_t i = 0; i < n && k->n < FOUND_MAX; i++)
        if (!list[i].graphics && !list[i].gone) /* a screen is nobody's job */
            k->found[k->n++] = list[i];
}

static void *look_at_gpus(void *arg)
{
    struct look *k = arg;
    struct err e;
    uint32_t count = 0;
    AUTO(nvml_close_p) struct nvml *n = nvml_open(k->nvml, NULL, &e);
    if (n && nvml_count(n, &count, &e) < 0)
        count = 0;
    for (uint32_t g = 0; g < count; g++) {
        AUTO(free_p) struct gpu_process *list = NULL;
        size_t listed = 0;
        if (gpu_process_list(n, g, "/proc", &list, &listed, &e) == 0)
            add_found(k, list, listed);
    }
    loop_wakeup_send(k->done);
    return NULL;
}

static const char *gpu_uuid(const struct leftover *l, uint32_t index)
{
    const struct gpu_list *g = &l->c.env->node.gpus;
    for (uint32_t i = 0; i < g->n; i++)
        if (g->gpu[i].index == index)
            return g->gpu[i].uuid;
    return "";
}

/* Whose control group it is in: "/…/<our folder>/17.1.0/…". */
static bool owner_of(const struct leftover *l, const struct gpu_process *p,
                     char out[static TASK_NAME_MAX + 1])
{
    struct str rest = str_of(p->cgroup), part, before = { 0 };
    while (rest.n) {
        str_cut(rest, '/', &part, &rest);
        if (str_is(before, l->c.group) && task_name_valid(part)) {
            memcpy(out, part.p, part.n);
            out[part.n] = '\0';
            return true;
        }
        before = part;
    }
    return false;
}

static void on_looked(void *ctx)
{
    struct leftover *l = ctx;
    if (!l->looking)
        return;
    pthread_join(l->thread, NULL);
    l->looking = false;
    for (size_t i = 0; i < l->look.n; i++) {
        const struct gpu_process *p = &l->look.found[i];
        char task[TASK_NAME_MAX + 1];
        bool owned = owner_of(l, p, task);
        if (!owned || !l->c.alive(l->c.ctx, task))
            report(l, p, owned ? task : NULL, gpu_uuid(l, p->gpu));
    }
}

struct leftover *leftover_new(const struct leftover_config *c)
{
    struct leftover *l = xcalloc(1, sizeof *l);
    l->c = *c;
    l->look.nvml = c->nvml;
    l->look.done = loop_wakeup(c->env->loop, on_looked, l);
    l->look.found = xcalloc(FOUND_MAX, sizeof *l->look.found);
    return l;
}

struct leftover *leftover_free(struct leftover *l)
{
    if (!l)
        return NULL;
    if (l->looking)
        pthread_join(l->thread, NULL);
    loop_unwatch(l->look.done);
    free(l->look.found);
    free(l);
    return NULL;
}

void leftover_look(struct leftover *l)
{
    cgroup_each(l->c.env->cgroups, look_at_group, l);
    bool real = l->c.env->node.gpus.n && !l->c.env->node.simulated;
    if (!real || l->looking) /* a look that hangs is not joined by a second one */
        return;
    l->look.n = 0;
    l->looking = pthread_create(&l->thread, NULL, look_at_gpus, &l->look) == 0;
}
