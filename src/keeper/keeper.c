#include "keeper/keeper.h"

#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

#include "keeper/leftover.h"
#include "keeper/registry.h"
#include "keeper/server.h"
#include "keeper/setup.h"
#include "keeper/tell.h"

#define STARTS_PER_CPU 2
#define LEFTOVER_EVERY_MS 300000
#define NET_AGAIN_MS 5000
#define LOOK_EVERY_MS 1000
#define LOOKS_AT_ONCE 250 /* each asks for six files */
#define TIDY_LOOK_MS 20
#define TIDY_NS (INT64_C(60) * 1000000000) /* then what is left is left */

struct keeper {
    struct env env;
    struct setup setup;
    struct server *server;
    struct registry tasks;
    bool tidy, stopping;
    unsigned starting, parallel;
    struct task **dead; /* freed when the loop comes round */
    size_t n_dead, cap_dead;
    struct loop_watch *wakeup, *leftover_timer, *look_timer;
    size_t looked_at; /* which task is next */
    struct leftover *leftover;
    int64_t net_tried_ms;
    struct loop_watch *tidy_timer;
    int64_t stopped_ns;
};

/* --- what tasks ask of us --- */

static void on_tell(void *ctx, struct str line)
{
    struct keeper *k = ctx;
    if (k->server)
        server_send(k->server, line);
}

static void on_slot_free(void *ctx)
{
    struct keeper *k = ctx;
    k->starting--;
    loop_wakeup_send(k->wakeup);
}

static void on_gone(void *ctx, struct task *t)
{
    struct keeper *k = ctx;
    registry_remove(&k->tasks, t);
    vec_grow(k->dead, k->n_dead, k->cap_dead);
    k->dead[k->n_dead++] = t;
    loop_wakeup_send(k->wakeup);
}

static void begin_waiting(struct keeper *k)
{
    while (k->starting < k->parallel) {
        struct task *t = registry_next(&k->tasks);
        if (!t)
            return;
        k->starting++;
        task_begin(t);
    }
}

static void on_wakeup(void *ctx)
{
    struct keeper *k = ctx;
    while (k->n_dead)
        task_free(k->dead[--k->n_dead]);
    begin_waiting(k);
}

/* --- verbs --- */

static int check_user(const struct keeper *k, const struct engine_user *u, struct err *e)
{
    if (k->env.mode != KEEPER_MODE_ROOT) {
        if (u->uid == geteuid())
            return 0;
        err_set(e, ERR_DENIED, "without root Nightshift serves one user: %u, not %.*s (%u)",
                (unsigned)geteuid(), STR_ARG(u->name), u->uid);
        return err_hint(e, "run the keeper as root to serve everybody");
    }
    if (u->uid < k->env.min_uid)
        return err_set(e, ERR_DENIED, "no job runs as uid %u: the least here is %u", u->uid,
                       k->env.min_uid);
    if (u->uid == FETCHER_UID || u->uid == FETCHER_UID + 1)
        return err_set(e, ERR_DENIED, "no job runs as uid %u: image tools have it", u->uid);
    bool group_root = u->gid == 0 || u->gid == FETCHER_UID;
    for (uint32_t i = 0; i < u->n_groups; i++)
        group_root |= u->groups[i] == 0;
    return group_root ? err_set(e, ERR_DENIED, "no job runs with group 0") : 0;
}

static void do_start(struct keeper *k, const struct keeper_request *r, struct str line)
{
    struct err e;
    struct task *t = registry_find(&k->tasks, r->task);
    if (t) {
        task_tell(t);
        return;
    }
    int rc = check_user(k, &r->start->user, &e);
    if (rc == 0 && registry_full(&k->tasks))
        rc = err_set(&e, ERR_UNAVAILABLE, "this machine knows %d tasks already", REGISTRY_MAX);
    if (rc < 0) {
        tell_failed(&k->env, r->task, &e);
        return;
    }
    t = task_new(&k->env, line, r->start);
    if (!t)
        return;
    registry_add(&k->tasks, t);
    registry_wait(&k->tasks, t);
    begin_waiting(k);
}

static void do_sync(struct keeper *k, const struct keeper_request *r, struct str line)
{
    (void)r;
    (void)line;
    for (size_t i = 0; i < k->tasks.n; i++)
        task_tell(k->tasks.all[i]);
    tell_ready(&k->env);
    leftover_look(k->leftover);
}

static void do_stop(struct keeper *k, const struct keeper_request *r, struct str line)
{
    struct task *t = registry_find(&k->tasks, r->task);
    (void)line;
    if (t)
        task_stop(t, r->why, r->grace_ms);
    if (t && task_state(t) == TASK_ENDED)
        task_tell(t);
}

static void do_signal(struct keeper *k, const struct keeper_request *r, struct str line)
{
    struct task *t = registry_find(&k->tasks, r->task);
    (void)line;
    if (t)
        task_signal(t, r->signo);
}

static void do_pause(struct keeper *k, const struct keeper_request *r, struct str line)
{
    struct task *t = registry_find(&k->tasks, r->task);
    (void)line;
    if (t)
        task_pause(t);
}

static void do_resume(struct keeper *k, const struct keeper_request *r, struct str line)
{
    struct task *t = registry_find(&k->tasks, r->task);
    (void)line;
    if (t)
        task_resume(t);
}

static void do_forget(struct keeper *k, const struct keeper_request *r, struct str line)
{
    struct task *t = registry_find(&k->tasks, r->task);
    (void)line;
    if (t)
        task_forget(t, r->verb == KEEPER_DO_PURGE);
    else
        task_forget_files(&k->env, r->task, r->verb == KEEPER_DO_PURGE);
}

static void do_ping(struct keeper *k, const struct keeper_request *r, struct str line)
{
    (void)r;
    (void)line;
    tell_pong(&k->env);
}

typedef void verb_fn(struct keeper *k, const struct keeper_request *r, struct str line);
static verb_fn *const verbs[] = {
    [KEEPER_DO_SYNC] = do_sync,     [KEEPER_DO_START] = do_start,  [KEEPER_DO_STOP] = do_stop,
    [KEEPER_DO_SIGNAL] = do_signal, [KEEPER_DO_PAUSE] = do_pause,  [KEEPER_DO_RESUME] = do_resume,
    [KEEPER_DO_FORGET] = do_forget, [KEEPER_DO_PURGE] = do_forget, [KEEPER_DO_PING] = do_ping,
};
_Static_assert(ARRAY_LEN(verbs) == KEEPER_VERB_COUNT, "a verb was added without its function");

static void on_line(void *ctx, struct str line)
{
    struct keeper *k = ctx;
    AUTO(arena_free) struct arena a = { .limit = 64u << 20 };
    struct keeper_request r;
    struct err e = { 0 };
    if (request_read(line, &a, &r, &e) == 0) {
        verbs[r.verb](k, &r, line);
        return;
    }
    const char *task = request_start_task(line, &a);
    log_event(k->env.log, LOG_WARN_, "request.refused", "task=%s why=%s", task ? task : "", e.msg);
    /* A start that cannot be read has failed; one that runs already is not harmed by it. */
    if (task && !registry_find(&k->tasks, task))
        tell_failed(&k->env, task, &e);
}

static void on_opened(void *ctx)
{
    struct keeper *k = ctx;
    bool caps[ENGINE_CAP_COUNT];
    setup_caps(&k->env, caps);
    tell_hello(&k->env, caps, mode_note(k->env.mode));
    tell_node(&k->env);
    tell_walls(&k->env);
}

static void on_walls_changed(void *ctx)
{
    struct keeper *k = ctx;
    tell_walls(&k->env);
}

/* What made it fail at the start may have passed: a slow boot, another firewall's lock. */
static bool on_net_again(void *ctx)
{
    struct keeper *k = ctx;
    int64_t now_ms = clock_now_ms(&k->env.clock);
    if (now_ms >= k->net_tried_ms && now_ms < k->net_tried_ms + NET_AGAIN_MS)
        return false;
    k->net_tried_ms = now_ms;
    if (!setup_net(&k->setup, &k->env))
        return false;
    for (size_t i = 0; i < k->tasks.n; i++)
        task_adopt_net(k->tasks.all[i]);
    net_sweep(k->env.net);
    log_event(k->env.log, LOG_INFO_, "net.there", "tasks=%zu", k->tasks.n);
    on_opened(k); /* what can be done here has changed */
    return true;
}

/* --- birth --- */

static bool is_alive(void *ctx, const char *name)
{
    struct keeper *k = ctx;
    const struct task *t = registry_find(&k->tasks, name);
    return t && task_alive(t);
}

static void on_leftover_timer(void *ctx)
{
    struct keeper *k = ctx;
    leftover_look(k->leftover);
    setup_mark_clock(&k->setup);
    if (!k->env.net)
        (void)on_net_again(k);
}

static bool remove_run(const struct env *v, const char *name)
{
    char path[300], rootfs[320];
    struct err e;
    snprintf(path, sizeof path, "%s/tasks/%s", v->run, name);
    snprintf(rootfs, sizeof rootfs, "%s/rootfs", path);
    return (v->mode != KEEPER_MODE_ROOT || image_unmount(rootfs, &e) == 0) &&
           tree_remove(path, &e) == 0;
}

/* Run folders of tasks that are over, which could not be removed at their end: a file system that was read-only for a
 * while, no descriptor left, or a keeper that is gone. */
static void sweep_runs(struct keeper *k)
{
    char path[300];
    snprintf(path, sizeof path, "%s/tasks", k->env.run);
    DIR *d = opendir(path);
    k->env.left = d == NULL;
    for (struct dirent *it; d && (it = readdir(d));) {
        struct task *t = registry_find(&k->tasks, it->d_name);
        if (task_name_valid(str_of(it->d_name)) && (!t || task_state(t) == TASK_ENDED))
            k->env.left |= !remove_run(&k->env, it->d_name);
    }
    if (d)
        closedir(d);
    for (size_t i = k->tasks.n; i-- > 0;)
        task_forget_again(k->tasks.all[i]);
}

static void on_look_timer(void *ctx)
{
    struct keeper *k = ctx;
    if (k->env.left)
        sweep_runs(k);
    for (size_t i = MIN(k->tasks.n, (size_t)LOOKS_AT_ONCE); i > 0 && k->tasks.n > 0; i--)
        task_look(k->tasks.all[k->looked_at++ % k->tasks.n]);
}

/* Every task of an earlier keeper, then what belongs to none of them. */
static int recover(struct keeper *k, struct err *e)
{
    char path[300];
    snprintf(path, sizeof path, "%s/tasks", k->env.state);
    DIR *d = opendir(path);
    if (!d)
        return err_set(e, ERR_UNAVAILABLE, "cannot read '%s'", path);
    for (struct dirent *it; (it = readdir(d)) && !registry_full(&k->tasks);) {
        bool is_task = task_name_valid(str_of(it->d_name)) && !task_is_log(dirfd(d), it->d_name);
        struct task *t = is_task ? task_recover(&k->env, it->d_name) : NULL;
        if (t)
            registry_add(&k->tasks, t);
    }
    closedir(d);
    if (k->env.net)
        net_sweep(k->env.net);
    if (k->env.scratch)
        scratch_sweep(k->env.scratch);
    sweep_runs(k);
    return 0;
}

static unsigned starts_at_once(uint64_t wanted)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    return wanted ? (unsigned)wanted : (unsigned)MAX(cpus, 1L) * STARTS_PER_CPU;
}

struct keeper *keeper_new(const struct keeper_config *c, struct loop *l, struct log *log,
                          struct err *e)
{
    struct keeper *k = xcalloc(1, sizeof *k);
    char socket[300];
    k->setup.lock_fd = -1;
    k->parallel = starts_at_once(c->parallel);
    k->env = (struct env){ .loop = l,
                           .log = log,
                           .tell = on_tell,
                           .net_again = on_net_again,
                           .walls_changed = on_walls_changed,
                           .slot_free = on_slot_free,
                           .gone = on_gone,
                           .ctx = k };
    k->wakeup = loop_wakeup(l, on_wakeup, k);
    if (setup_open(&k->setup, c, &k->env, e) < 0)
        return keeper_free(k);
    k->leftover = leftover_new(&(struct leftover_config){ .env = &k->env,
                                                          .nvml = c->nvml,
                                                          .group = k->setup.cgroup,
                                                          .end = c->end_leftovers,
                                                          .alive = is_alive,
                                                          .ctx = k });
    if (recover(k, e) < 0)
        return keeper_free(k);
    k->tidy = c->tidy;
    k->leftover_timer = loop_timer(l, on_leftover_timer, k);
    loop_timer_set(k->leftover_timer, LEFTOVER_EVERY_MS, LEFTOVER_EVERY_MS);
    k->look_timer = loop_timer(l, on_look_timer, k);
    loop_timer_set(k->look_timer, LOOK_EVERY_MS, LOOK_EVERY_MS);
    snprintf(socket, sizeof socket, "%s/keeper.sock", k->env.run);
    struct server_config serve = { .loop = l,
                                   .log = log,
                                   .path = c->socket ? c->socket : socket,
                                   .gid = k->env.gid,
                                   .opened = on_opened,
                                   .line = on_line,
                                   .ctx = k };
    k->server = server_new(&serve, e);
    if (!k->server)
        return keeper_free(k);
    log_event(log, LOG_INFO_, "keeper.ready", "mode=%s cgroup=%s tasks=%zu socket=%s",
              keeper_mode_name(k->env.mode), cgroups_kind_name(cgroups_kind(k->env.cgroups)),
              k->tasks.n, serve.path);
    return k;
}

static void on_tidied(void *ctx, const struct err *e)
{
    struct keeper *k = ctx;
    if (e && e->code != ERR_NONE)
        log_event(k->env.log, LOG_WARN_, "keeper.tidy", "why=%s", e->msg);
    loop_stop(k->env.loop);
}

/* Those that the daemon did not end, or could not: their results wait for the next one. */
static bool end_tasks(struct keeper *k)
{
    size_t living = 0;
    for (size_t i = k->tasks.n; i-- > 0;) {
        struct task *t = k->tasks.all[i];
        if (task_state(t) == TASK_ENDED || task_state(t) == TASK_GONE)
            continue;
        living++;
        task_stop(t, END_STOPPED, 0);
    }
    return living > 0;
}

static void on_tidy_timer(void *ctx)
{
    struct keeper *k = ctx;
    bool late = clock_mono_ns() - k->stopped_ns > TIDY_NS;
    if (end_tasks(k) && !late)
        return;
    loop_timer_clear(k->tidy_timer);
    if (late)
        log_plain(k->env.log, LOG_WARN_, "keeper.tidy_late");
    if (k->env.scratch)
        scratch_drop_idle(k->env.scratch);
    cgroups_drop(k->env.cgroups);
    if (k->env.net && !late)
        net_remove_all(k->env.net, on_tidied, k);
    else
        loop_stop(k->env.loop);
}

void keeper_stop(struct keeper *k)
{
    bool again = k->stopping;
    k->stopping = true;
    k->stopped_ns = again ? k->stopped_ns : clock_mono_ns();
    if (k->tidy && !again) {
        k->tidy_timer = loop_timer(k->env.loop, on_tidy_timer, k);
        loop_timer_set(k->tidy_timer, 0, TIDY_LOOK_MS);
        return;
    }
    if (k->env.scratch)
        scratch_drop_idle(k->env.scratch);
    loop_stop(k->env.loop);
}

struct keeper *keeper_free(struct keeper *k)
{
    if (!k)
        return NULL;
    k->server = server_free(k->server);
    k->leftover = leftover_free(k->leftover);
    loop_unwatch(k->leftover_timer);
    loop_unwatch(k->look_timer);
    loop_unwatch(k->tidy_timer);
    loop_unwatch(k->wakeup);
    for (size_t i = 0; i < k->n_dead; i++)
        task_free(k->dead[i]);
    free(k->dead);
    /* Networks first: no callback may come to a task that is gone. */
    setup_close(&k->setup, &k->env);
    registry_clear(&k->tasks);
    free(k);
    return NULL;
}
