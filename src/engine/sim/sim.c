#include "engine/sim/sim.h"

#include <stdio.h>

#include "base/map.h"
#include "base/rng.h"
#include "engine/sim/life.h"

struct sim {
    struct sim_config config;
    struct event_node *node;
    const char **uuid; /* nodes x (GPUS_PER_NODE_MAX + 1) */
    struct names names;
    int64_t now_ms;
    bool away;
    bool deaf; /* since it was away, until it has told all: starts are lost */
    bool caps[ENGINE_CAP_COUNT];
    struct life **task; /* in order of their starts */
    size_t tasks, cap;
    struct engine_event *out; /* to be told with the next step */
    size_t outs, out_cap;
    struct task_id *begun; /* every program that ever began */
    size_t begins, begin_cap;
    struct sim_counts counts;
};

static bool same_task(struct task_id a, struct task_id b)
{
    return a.job == b.job && a.run == b.run && a.replica == b.replica;
}

static struct life *find(const struct sim *s, struct task_id t)
{
    for (size_t i = 0; i < s->tasks; i++)
        if (same_task(s->task[i]->id, t))
            return s->task[i];
    return NULL;
}

static void drop(struct sim *s, const struct life *l)
{
    for (size_t i = 0; i < s->tasks; i++)
        if (s->task[i] == l) {
            memmove(&s->task[i], &s->task[i + 1], (s->tasks - i - 1) * sizeof(struct life *));
            s->tasks--;
            life_free((struct life *)(uintptr_t)l);
            return;
        }
}

static void tell(struct sim *s, struct engine_event ev)
{
    vec_grow(s->out, s->outs, s->out_cap);
    s->out[s->outs++] = ev;
}

static struct engine_event about(const struct sim *s, const struct life *l,
                                 enum engine_event_kind kind)
{
    return (struct engine_event){ .kind = kind, .task = l->id, .t_ms = s->now_ms };
}

/* ---- what a task's life tells ---- */

static void tell_end(struct sim *s, const struct life *l)
{
    struct engine_event ev = about(s, l, ENGINE_ENDED);
    ev.t_ms = l->ended_ms;
    ev.ended.code = l->end.code;
    ev.ended.signal = l->end.signal;
    ev.ended.why = l->end.why;
    ev.ended.cpu_ms = (uint64_t)l->ran_ms;
    tell(s, ev);
}

static bool share_gpu(const struct slot *a, const struct slot *b, uint32_t gpu)
{
    return a->node == b->node && (a->gpu_mask & b->gpu_mask & (1u << gpu));
}

/* A program begins: is anything wrong with that? */
static void count_begin(struct sim *s, const struct life *l)
{
    for (size_t i = 0; i < s->begins; i++)
        s->counts.twice += same_task(s->begun[i], l->id);
    vec_grow(s->begun, s->begins, s->begin_cap);
    s->begun[s->begins++] = l->id;
    s->counts.starts++;
    uint32_t held[GPUS_PER_NODE_MAX] = { 0 };
    for (size_t i = 0; i < s->tasks; i++) {
        const struct life *k = s->task[i];
        if (k != l && !life_alive(k))
            continue;
        s->counts.overlaps += k != l && k->id.job == l->id.job && k->id.replica == l->id.replica;
        for (uint32_t g = 0; g < GPUS_PER_NODE_MAX; g++)
            held[g] += share_gpu(&k->slot, &l->slot, g) ? k->slot.milli : 0;
    }
    for (uint32_t g = 0; g < GPUS_PER_NODE_MAX; g++)
        s->counts.overbooked += held[g] > GPU_MILLI;
}

static void happened(struct sim *s, struct life *l, enum life_step step)
{
    struct engine_event ev;
    switch (step) {
    case LIFE_BEGAN:
        count_begin(s, l);
        tell(s, about(s, l, ENGINE_STARTED));
        return;
    case LIFE_FAILED:
        ev = about(s, l, ENGINE_FAILED);
        err_set(&ev.failed, ERR_INVALID, "the simulated start failed");
        err_hint(&ev.failed, "its script or the seed says so");
        tell(s, ev);
        drop(s, l);
        return;
    case LIFE_PAUSED: tell(s, about(s, l, ENGINE_PAUSED)); return;
    case LIFE_RESUMED: tell(s, about(s, l, ENGINE_RESUMED)); return;
    case LIFE_ENDED: tell_end(s, l); return;
    case LIFE_NOTHING: return;
    }
    abort();
}

/* ---- time ---- */

static struct life *next_life(const struct sim *s, int64_t *out_ms)
{
    struct life *first = NULL;
    *out_ms = INT64_MAX;
    for (size_t i = 0; i < s->tasks; i++) {
        int64_t at = life_next_ms(s->task[i]);
        if (at < *out_ms) {
            *out_ms = at;
            first = s->task[i];
        }
    }
    return first;
}

static void say_all(struct sim *s)
{
    /* A listener may use verbs, which may tell more: that is for the next step. */
    size_t n = s->outs;
    struct engine_event *list = TAKE(s->out);
    s->outs = s->out_cap = 0;
    for (size_t i = 0; i < n; i++) {
        if (list[i].kind == ENGINE_READY && !s->away)
            s->deaf = false;
        if (s->config.sink && (!s->away || list[i].kind == ENGINE_AWAY))
            s->config.sink(s->config.ctx, &list[i]);
    }
    free(list);
}

void engine_sim_step(struct engine *en, int64_t now_ms)
{
    struct sim *s = en->self;
    int64_t at;
    say_all(s);
    for (struct life *l; (l = next_life(s, &at)) && at <= now_ms;) {
        s->now_ms = MAX(s->now_ms, at);
        happened(s, l, life_step(l, s->now_ms));
        say_all(s);
    }
    s->now_ms = MAX(s->now_ms, now_ms);
    for (size_t i = 0; i < s->tasks; i++)
        life_seen(s->task[i], s->now_ms);
}

bool engine_sim_next(const struct engine *en, int64_t *out_ms)
{
    const struct sim *s = en->self;
    if (next_life(s, out_ms) && !s->outs)
        return true;
    if (s->outs)
        *out_ms = s->now_ms;
    return s->outs > 0;
}

/* ---- verbs ---- */

static int sim_sync(void *self, struct err *e)
{
    struct sim *s = self;
    (void)e;
    if (s->away)
        return 0;
    for (uint32_t i = 0; i < s->config.nodes; i++) {
        struct engine_event ev = { .kind = ENGINE_NODE, .t_ms = s->now_ms };
        ev.machine.node = &s->node[i];
        ev.machine.state = NODE_UP;
        ev.machine.simulated = true;
        ev.machine.gpu_uuid = &s->uuid[i * (GPUS_PER_NODE_MAX + 1)];
        tell(s, ev);
    }
    for (size_t i = 0; i < s->tasks; i++) {
        const struct life *l = s->task[i];
        struct engine_event ev = about(s, l, ENGINE_PROGRESS);
        ev.progress.text = STR("starting");
        if (l->state == LIFE_IS_STARTING)
            tell(s, ev);
        else if (l->state == LIFE_IS_OVER)
            tell_end(s, l);
        else
            tell(s, about(s, l, ENGINE_STARTED));
        if (l->state == LIFE_IS_PAUSED)
            tell(s, about(s, l, ENGINE_PAUSED));
    }
    tell(s, (struct engine_event){ .kind = ENGINE_READY, .t_ms = s->now_ms });
    return 0;
}

static int sim_start(void *self, const struct engine_start *start, struct err *e)
{
    struct sim *s = self;
    struct task_id t = start->task;
    if (s->deaf || find(s, t))
        return 0;
    /* Of the seed and the task alone: the order of the calls does not matter. */
    struct rng r = { s->config.seed ^ (t.job << 24) ^ ((uint64_t)t.run << 12) ^ t.replica };
    rng_u64(&r);
    struct life_luck luck = { .start_ms = rng_between(
                                  &r, s->config.start_least_ms,
                                  MAX(s->config.start_least_ms, s->config.start_most_ms)),
                              .fails = rng_below(&r, 1000) < s->config.fail_permille,
                              .lost = rng_below(&r, 1000) < s->config.lose_permille,
                              .lost_at = rng_unit(&r) };
    struct life *l = life_new(start, &luck, s->now_ms, e);
    if (!l)
        return -1;
    vec_grow(s->task, s->tasks, s->cap);
    s->task[s->tasks++] = l;
    return 0;
}

static int sim_stop(void *self, struct task_id t, int64_t grace_ms, enum task_end why,
                    struct err *e)
{
    struct sim *s = self;
    struct life *l = s->away ? NULL : find(s, t);
    (void)e;
    if (l && l->state == LIFE_IS_OVER)
        tell_end(s, l);
    else if (l)
        life_stop(l, s->now_ms, grace_ms, why);
    return 0;
}

static int sim_signal(void *self, struct task_id t, int signo, struct err *e)
{
    struct sim *s = self;
    struct life *l = s->away ? NULL : find(s, t);
    (void)e;
    if (l)
        life_signal(l, s->now_ms, signo);
    return 0;
}

static int sim_pause(void *self, struct task_id t, struct err *e)
{
    struct sim *s = self;
    struct life *l = s->away ? NULL : find(s, t);
    (void)e;
    if (l && l->state == LIFE_IS_PAUSED)
        tell(s, about(s, l, ENGINE_PAUSED));
    else if (l)
        life_pause(l, s->now_ms);
    return 0;
}

static int sim_resume(void *self, struct task_id t, struct err *e)
{
    struct sim *s = self;
    struct life *l = s->away ? NULL : find(s, t);
    (void)e;
    if (l && l->state == LIFE_IS_RUNNING)
        tell(s, about(s, l, ENGINE_RESUMED));
    if (l)
        life_resume(l, s->now_ms);
    return 0;
}

static int sim_forget(void *self, struct task_id t, struct err *e)
{
    struct sim *s = self;
    struct life *l = s->away ? NULL : find(s, t);
    (void)e;
    if (l && l->state == LIFE_IS_OVER)
        drop(s, l);
    return 0;
}

static const char *sim_log_dir(void *self, struct task_id t, char *out, size_t n)
{
    const struct sim *s = self;
    char text[64];
    snprintf(out, n, "%s/%s", s->config.logs ? s->config.logs : "/dev/null", task_format(t, text));
    return out;
}

static void sim_free(void *self)
{
    struct sim *s = self;
    for (size_t i = 0; i < s->tasks; i++)
        life_free(s->task[i]);
    free(s->task);
    free(s->out);
    free(s->begun);
    free(s->node);
    free(s->uuid);
    names_free(&s->names);
    free(s);
}

static const struct engine_ops ops = {
    .name = "sim",
    .sync = sim_sync,
    .start = sim_start,
    .stop = sim_stop,
    .signal = sim_signal,
    .pause = sim_pause,
    .resume = sim_resume,
    .forget = sim_forget,
    .purge = sim_forget,
    .log_dir = sim_log_dir,
    .free = sim_free,
};

/* ---- making one ---- */

static const char *keep(struct sim *s, const char *name)
{
    return names_get(&s->names, names_intern(&s->names, str_of(name ? name : "")));
}

static void copy_nodes(struct sim *s, const struct sim_config *c)
{
    char text[320];
    s->node = xcalloc(c->nodes, sizeof *s->node);
    s->uuid = xcalloc((size_t)c->nodes * (GPUS_PER_NODE_MAX + 1), sizeof *s->uuid);
    for (uint32_t i = 0; i < c->nodes; i++) {
        const struct sim_node *n = &c->node[i];
        s->node[i] = (struct event_node){ .name = str_of(keep(s, n->name)),
                                          .model = str_of(keep(s, n->model)),
                                          .gpus = MIN(n->gpus, (uint32_t)GPUS_PER_NODE_MAX),
                                          .gpu_mem_mib = n->gpu_mem_mib,
                                          .cpu_milli = n->cpu_milli,
                                          .mem_mib = n->mem_mib };
        for (uint32_t g = 0; g < s->node[i].gpus; g++) {
            snprintf(text, sizeof text, "SIM-%s-%u", n->name, g);
            s->uuid[i * (GPUS_PER_NODE_MAX + 1) + g] = keep(s, text);
        }
    }
}

struct engine engine_sim_new(const struct sim_config *c)
{
    /* Nothing real runs, so nothing of it can leave its bounds; and there is nothing to attach to. */
    static const bool able[ENGINE_CAP_COUNT] = {
        [CAP_GPU_INDEX] = true, [CAP_GPU_SHARE] = true,  [CAP_GANG] = true,
        [CAP_IMAGES] = true,    [CAP_PAUSE] = true,      [CAP_SIGNAL] = true,
        [CAP_NETWORK] = true,   [CAP_MULTI_USER] = true, [CAP_LIMITS] = true,
        [CAP_QUOTA] = true
    };
    struct sim *s = xcalloc(1, sizeof *s);
    s->config = *c;
    s->config.node = NULL; /* borrowed for this call */
    s->now_ms = c->now_ms;
    copy_nodes(s, c);
    for (int i = 0; i < ENGINE_CAP_COUNT; i++)
        s->caps[i] = able[i] && !c->lacks[i];
    return (struct engine){ .ops = &ops, .self = s, .caps = s->caps };
}

void engine_sim_listen(struct engine *en, engine_sink_fn *sink, void *ctx)
{
    struct sim *s = en->self;
    s->config.sink = sink;
    s->config.ctx = ctx;
    s->outs = 0; /* what was meant for the one before */
    s->deaf = s->away;
}

void engine_sim_away(struct engine *en, bool away)
{
    struct sim *s = en->self;
    struct err e;
    if (away == s->away)
        return;
    s->away = away;
    if (!away) {
        sim_sync(s, &e); /* after the AWAY, if that is still to be told */
        return;
    }
    s->deaf = true;
    s->outs = 0;
    tell(s, (struct engine_event){ .kind = ENGINE_AWAY, .t_ms = s->now_ms });
}

void engine_sim_lose(struct engine *en, struct task_id t)
{
    struct sim *s = en->self;
    struct life *l = find(s, t);
    if (l)
        life_lose(l, s->now_ms);
}

/* ---- looking ---- */

struct sim_counts engine_sim_counts(const struct engine *en)
{
    const struct sim *s = en->self;
    struct sim_counts c = s->counts;
    for (size_t i = 0; i < s->tasks; i++) {
        c.alive += life_alive(s->task[i]);
        c.ended += s->task[i]->state == LIFE_IS_OVER;
    }
    return c;
}

bool engine_sim_look(const struct engine *en, struct task_id t, struct sim_task_view *out)
{
    const struct life *l = find(en->self, t);
    if (!l)
        return false;
    *out = (struct sim_task_view){ .running = l->state == LIFE_IS_RUNNING,
                                   .paused = l->state == LIFE_IS_PAUSED,
                                   .ended = l->state == LIFE_IS_OVER,
                                   .max_time_ms = l->max_time_ms,
                                   .uid = l->uid,
                                   .gid = l->gid,
                                   .home = l->home,
                                   .env = (const char *const *)l->env };
    return true;
}
