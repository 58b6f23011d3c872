/* Jobs that have a GPU and do nothing with it. */
#include "api/notices.h"

#include "base/map.h"

#define LOOK_MS 60000u

struct idling {
    struct api *api;
    struct loop_watch *timer;
    struct map told; /* jobs, and their run that was told of */
};

/* The machine's GPU that has done nothing for longest, of those that the job holds; false: each works. */
static bool find_idle(struct api *a, const struct slot *slot, struct history_node *n,
                      uint32_t *out_gpu, int64_t *out_since_ms)
{
    struct core *core = control_core(a->config.control);
    struct node_view v;
    struct control_node cn = { 0 };
    bool found = false;
    if (!core_node(core, (node_id){ slot->node }, &v) ||
        !history_find(a->config.history, str_of(v.name), n) ||
        clock_now_ms(&a->config.clock) - n->heard_ms > HISTORY_STALE_MS ||
        !control_node(a->config.control, str_of(v.name), &cn))
        return false;
    for (uint32_t g = 0; g < v.gpus && g < cn.gpus; g++)
        for (uint32_t at = 0; (slot->gpu_mask & (1u << g)) && at < n->head->gpus; at++) {
            int64_t since_ms = n->idle_since_ms[at];
            if (strcmp(cn.gpu_uuid[g], n->head->gpu[at].uuid) != 0 || !since_ms ||
                (found && since_ms >= *out_since_ms))
                continue;
            found = true;
            *out_gpu = g;
            *out_since_ms = since_ms;
        }
    return found;
}

static bool was_told(const struct idling *i, const struct store_job *j)
{
    uint64_t run;
    return map_get(&i->told, j->fixed.id, &run) && run == j->now.run;
}

static bool look_at(struct idling *i, const struct store_job *j)
{
    struct api *a = i->api;
    struct job_view v;
    int64_t now_ms = clock_now_ms(&a->config.clock);
    if (was_told(i, j) || !core_job(control_core(a->config.control), (job_id){ j->fixed.id }, &v))
        return false;
    for (uint32_t k = 0; k < v.n; k++) {
        struct history_node n;
        struct notice_idle idle = { .job = j, .now_ms = now_ms };
        if (!v.slots[k].gpu_mask || !find_idle(a, &v.slots[k], &n, &idle.gpu, &idle.idle_since_ms))
            continue;
        /* It may have stood still before the job came. */
        idle.idle_since_ms = MAX(idle.idle_since_ms, j->now.started_ms);
        if (now_ms - idle.idle_since_ms < a->config.notice_idle_ms)
            continue;
        idle.node = str_of(n.name);
        map_set(&i->told, j->fixed.id, j->now.run);
        return notices_idle(a->config.notices, control_batch(a->config.control), &idle);
    }
    return false;
}

static void look(void *ctx)
{
    struct idling *i = ctx;
    struct api *a = i->api;
    AUTO(arena_free) struct arena arena = { 0 };
    struct store_filter f = { .limit = PAGE_MAX, .states = 1u << JOB_RUNNING };
    struct store_scope all = { .everything = true };
    struct store_jobs jobs = { .n = PAGE_MAX };
    struct err e;
    bool told = false;
    while (jobs.n == PAGE_MAX) {
        arena_reset(&arena);
        if (store_jobs_list(a->config.store, &all, &f, &arena, &jobs, &e) < 0)
            break;
        for (size_t k = 0; k < jobs.n; k++) {
            f.before = jobs.v[k].fixed.id;
            if (notices_wants_idle(a->config.notices, &jobs.v[k]))
                told |= look_at(i, &jobs.v[k]);
        }
    }
    if (told)
        control_commit(a->config.control, (struct control_done){ 0 });
    if (i->told.n > 100000) /* of jobs long gone; the store knows what was told */
        map_free(&i->told);
}

struct idling *idling_new(struct api *a)
{
    if (!a->config.notices || !a->config.history || a->config.notice_idle_ms <= 0)
        return NULL;
    struct idling *i = xcalloc(1, sizeof *i);
    i->api = a;
    i->timer = loop_timer(a->config.loop, look, i);
    uint64_t every_ms = MIN((uint64_t)LOOK_MS, (uint64_t)a->config.notice_idle_ms);
    loop_timer_set(i->timer, every_ms, MAX(every_ms, (uint64_t)1000));
    return i;
}

struct idling *idling_free(struct idling *i)
{
    if (!i)
        return NULL;
    loop_unwatch(i->timer);
    map_free(&i->told);
    free(i);
    return NULL;
}
