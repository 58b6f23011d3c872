#include "engine/kube/kube.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/kube/state.h"

#define TICK_MS 250
/* With 128 a binding took more than twice the CPU of one with 64. */
#define IN_FLIGHT 64

int64_t kube_now_ms(const struct kube *k)
{
    return clock_now_ms(&k->config.clock);
}

void kube_soon(struct kube *k)
{
    loop_wakeup_send(k->soon);
}

void kube_tell(struct kube *k, const struct engine_event *ev)
{
    k->config.sink(k->config.ctx, ev);
}

/* ---- what is known ---- */

static bool is_known(const struct kube *k)
{
    return k->nodes_synced && k->pods_synced && k->lease.held && copies_known(k);
}

/* Everything again, machines before those that want one.  What others made and waits is offered after READY:
 * before it nobody takes anything new. */
static void tell_all(struct kube *k)
{
    k->ready_wanted = false;
    k->is_ready = true;
    machines_tell(k, true);
    classes_tell_own(k, true);
    k->classes.changed = false;
    gangs_tell(k, GANGS_PLACED);
    kept_tell(k);
    tasks_tell_all(k);
    kube_tell(k, &(struct engine_event){ .kind = ENGINE_READY, .t_ms = kube_now_ms(k) });
    gangs_tell(k, GANGS_ALL);
    tasks_step_all(k);
}

void kube_check_ready(struct kube *k)
{
    if (k->is_ready && !is_known(k)) {
        k->is_ready = false;
        k->ready_wanted = true;
        kube_tell(k, &(struct engine_event){ .kind = ENGINE_AWAY, .t_ms = kube_now_ms(k) });
    } else if (k->ready_wanted && is_known(k)) {
        kube_soon(k);
    }
}

/* What has changed in this round of the loop, once. */
static void on_soon(void *ctx)
{
    struct kube *k = ctx;
    if (k->ready_wanted && is_known(k)) {
        tell_all(k);
        return;
    }
    if (!k->is_ready)
        return;
    machines_tell(k, false);
    if (k->classes.changed) {
        k->classes.changed = false;
        classes_tell_own(k, false);
        gangs_tell(k, GANGS_ALL);
    } else {
        gangs_tell(k, GANGS_CHANGED);
    }
}

static void on_tick(void *ctx)
{
    struct kube *k = ctx;
    lease_tick(k);
    copies_tick(k);
    if (!k->is_ready)
        return;
    errands_tick(k);
    tasks_tick(k);
    machines_tick(k);
    spaces_tick(k);
    owners_tick(k);
    gangs_tell(k, GANGS_CHANGED);
}

/* ---- watches ---- */

static void nodes_list(void *ctx)
{
    machines_list(ctx);
}

static void nodes_object(void *ctx, enum kube_change what, const struct json *o)
{
    machines_object(ctx, what, o);
}

static void nodes_synced(void *ctx)
{
    struct kube *k = ctx;
    machines_synced(k);
    k->nodes_synced = true;
    kube_check_ready(k);
}

static void nodes_back(void *ctx)
{
    struct kube *k = ctx;
    k->nodes_synced = true;
    kube_check_ready(k);
}

static void nodes_away(void *ctx, const struct err *why)
{
    struct kube *k = ctx;
    k->nodes_synced = false;
    log_event(k->config.log, LOG_WARN_, "kube.away", "what=nodes why=%s", why->msg);
    kube_check_ready(k);
}

static void all_pods_list(void *ctx)
{
    pods_list(ctx);
}

static void all_pods_object(void *ctx, enum kube_change what, const struct json *o)
{
    pods_object(ctx, what, o);
}

static void all_pods_synced(void *ctx)
{
    struct kube *k = ctx;
    pods_synced(k);
    kube_check_ready(k);
}

static void all_pods_back(void *ctx)
{
    struct kube *k = ctx;
    k->pods_synced = true;
    kube_check_ready(k);
}

static void all_pods_away(void *ctx, const struct err *why)
{
    struct kube *k = ctx;
    k->pods_synced = false;
    log_event(k->config.log, LOG_WARN_, "kube.away", "what=pods why=%s", why->msg);
    kube_check_ready(k);
}

/* ---- verbs ---- */

static int kube_sync(void *self, struct err *e)
{
    struct kube *k = self;
    (void)e;
    k->ready_wanted = true;
    kube_soon(k);
    return 0;
}

static int kube_check(void *self, const struct spec *s, struct err *e)
{
    const struct kube *k = self;
    return pod_check(&k->config.site, s, e);
}

static int kube_start(void *self, const struct engine_start *s, struct err *e)
{
    struct kube *k = self;
    return s->spec->observed.n ? gangs_start(k, s, e) : tasks_start(k, s, e);
}

static int kube_stop(void *self, struct task_id id, int64_t grace_ms, enum task_end why,
                     struct err *e)
{
    struct kube *k = self;
    struct task *t = tasks_find(k, id);
    (void)e;
    if (t)
        tasks_stop(k, t, &(struct task_stop){ .grace_ms = grace_ms, .why = why });
    return 0;
}

static int kube_freeze(void *self, struct task_id id, int signo, int64_t grace_ms, struct err *e)
{
    struct kube *k = self;
    struct task *t = tasks_find(k, id);
    (void)signo; /* its pod knows it: nightshift-init makes it of the kubelet's SIGTERM */
    (void)e;
    if (t)
        tasks_stop(k, t,
                   &(struct task_stop){ .freeze = true, .grace_ms = grace_ms, .why = END_STOPPED });
    return 0;
}

static int kube_signal(void *self, struct task_id id, int signo, struct err *e)
{
    struct kube *k = self;
    const struct task *t = tasks_find(k, id);
    return t && t->step == STEP_RUNNING ? stream_signal(k, t, signo, e) : 0;
}

static int kube_forget(void *self, struct task_id id, struct err *e)
{
    struct kube *k = self;
    struct task *t = tasks_find(k, id);
    (void)e;
    if (t)
        tasks_forget(k, t);
    return 0;
}

static const char *kube_log_dir(void *self, struct task_id t, char *out, size_t n)
{
    const struct kube *k = self;
    char text[64];
    snprintf(out, n, "%s/tasks/%s", k->config.state, task_format(t, text));
    return out;
}

static int kube_purge(void *self, struct task_id id, struct err *e)
{
    char dir[4096], path[4160];
    kube_log_dir(self, id, dir, sizeof dir);
    for (int i = 0; i < JOBLOG_SEGMENTS; i++) {
        snprintf(path, sizeof path, "%s/log.%d", dir, i);
        unlink(path);
    }
    rmdir(dir);
    return kube_forget(self, id, e);
}

static int kube_open_stream(void *self, struct task_id id, struct err *e)
{
    struct kube *k = self;
    const struct task *t = tasks_find(k, id);
    if (!t || t->step != STEP_RUNNING) {
        err_set(e, ERR_CONFLICT, "its pod does not run");
        return err_hint(e, "see why: nightshift why %llu", (unsigned long long)id.job);
    }
    return stream_open(k, t, e);
}

static int kube_tenant(void *self, const struct engine_tenant *t, struct err *e)
{
    return spaces_tenant(self, t, e);
}

static void kube_word(void *self, struct str observed, const struct engine_word *w)
{
    gangs_word(self, observed, w);
}

static void kube_await(void *self, struct str observed)
{
    owners_await(self, observed);
}

static void kube_lend(void *self, struct str node, bool is_ours)
{
    machines_lend(self, node, is_ours);
}

static void kube_keep(void *self, uint64_t job)
{
    copies_keep(self, job);
}

static void kube_free(void *self)
{
    struct kube *k = self;
    copies_free(k);
    errands_free(k);
    kube_watch_free(k->nodes);
    kube_watch_free(k->pods);
    loop_unwatch(k->tick);
    loop_unwatch(k->soon);
    lease_free(k);
    spaces_free(k);
    tasks_free(k);
    gangs_free(k);
    pods_free(k);
    classes_free(k);
    machines_free(k);
    kube_client_free(k->client);
    kube_config_free((struct kube_config *)(uintptr_t)k->config.server);
    arena_free(&k->texts);
    free(k);
}

static const struct engine_ops ops = {
    .name = "kube",
    .check = kube_check,
    .sync = kube_sync,
    .start = kube_start,
    .stop = kube_stop,
    .freeze = kube_freeze,
    .signal = kube_signal,
    .forget = kube_forget,
    .purge = kube_purge,
    .open_stream = kube_open_stream,
    .log_dir = kube_log_dir,
    .tenant = kube_tenant,
    .tell = kube_word,
    .await = kube_await,
    .lend = kube_lend,
    .keep = kube_keep,
    .free = kube_free,
};

/* ---- its beginning ---- */

static void copy_texts(struct kube *k)
{
    struct kube_engine_config *c = &k->config;
    const char **text[] = {
        &c->site.scheduler,   &c->site.image,      &c->site.init_image,  &c->site.init_path,
        &c->site.gpu,         &c->site.state_size, &c->site.state_class, &c->site.home_size,
        &c->site.home_access, &c->space,           &c->prefix,           &c->user_prefix,
        &c->other_tenant,     &c->state,           &c->identity,         &c->site.daemon
    };
    for (size_t i = 0; i < ARRAY_LEN(text); i++)
        *text[i] = arena_printf(&k->texts, "%s", *text[i] ? *text[i] : "");
}

int engine_kube_new(const struct kube_engine_config *c, struct engine *out, struct err *e)
{
    static const enum engine_cap can[] = { CAP_GANG,  CAP_IMAGES,  CAP_SIGNAL,     CAP_ATTACH,
                                           CAP_EXEC,  CAP_NETWORK, CAP_MULTI_USER, CAP_LIMITS,
                                           CAP_QUOTA, CAP_DEVICES };
    struct kube *k = xcalloc(1, sizeof *k);
    k->config = *c;
    copy_texts(k);
    for (size_t i = 0; i < ARRAY_LEN(can); i++)
        k->caps[can[i]] = true;
    k->client = kube_client_new(c->loop, c->log, c->server, e);
    if (!k->client) {
        kube_free(k);
        return -1;
    }
    kube_client_set_in_flight(k->client, IN_FLIGHT);
    classes_init(k);
    tasks_init(k);
    copies_init(k);
    names_intern(&k->devices, STR("")); /* number 0 */
    k->soon = loop_wakeup(c->loop, on_soon, k);
    k->tick = loop_timer(c->loop, on_tick, k);
    loop_timer_set(k->tick, 0, TICK_MS);
    k->nodes = kube_watch_new(c->loop, &(struct kube_watch_config){ .client = k->client,
                                                                    .path = "/api/v1/nodes",
                                                                    .log = c->log,
                                                                    .ctx = k,
                                                                    .on_list = nodes_list,
                                                                    .on_object = nodes_object,
                                                                    .on_synced = nodes_synced,
                                                                    .on_away = nodes_away,
                                                                    .on_back = nodes_back });
    k->pods = kube_watch_new(c->loop, &(struct kube_watch_config){ .client = k->client,
                                                                   .path = "/api/v1/pods",
                                                                   .log = c->log,
                                                                   .ctx = k,
                                                                   .on_list = all_pods_list,
                                                                   .on_object = all_pods_object,
                                                                   .on_synced = all_pods_synced,
                                                                   .on_away = all_pods_away,
                                                                   .on_back = all_pods_back });
    *out = (struct engine){ .ops = &ops, .self = k, .caps = k->caps };
    return 0;
}
