/* small - a core and its events in few words, for tests that spell their world out. */
#ifndef NS_TESTS_LIB_SMALL_H
#define NS_TESTS_LIB_SMALL_H

#include "core/core.h"
#include "tests/lib/test.h"

#define MINUTE_MS INT64_C(60000)
#define HOUR_MS (60 * MINUTE_MS)

/* A core, its clock and the last job. */
struct small {
    struct core *c;
    struct arena a;
    struct plan plan; /* of the last pass */
    int64_t now_ms;
    uint64_t last;
};

static inline struct small small_new(void)
{
    return (struct small){ .c = core_new() };
}

static inline void small_free(struct small *s)
{
    s->c = core_free(s->c);
    arena_free(&s->a);
}

static inline int small_try(struct small *s, struct event ev, struct err *e)
{
    ev.t_ms = s->now_ms;
    return core_apply(s->c, &ev, e);
}

static inline void small_apply(struct small *s, struct event ev)
{
    struct err e;
    if (small_try(s, ev, &e) < 0)
        test_fail(__FILE__, __LINE__, "refused: %s", e.msg);
}

static inline struct event tenant_event(const char *name, const char *parent, uint32_t weight)
{
    struct event ev = { .kind = EVENT_TENANT };
    ev.tenant = (struct event_tenant){ .name = str_of(name),
                                       .parent = str_of(parent),
                                       .weight_milli = weight * 1000,
                                       .limit = AMOUNTS_NO_LIMIT,
                                       .user_limit = AMOUNTS_NO_LIMIT };
    return ev;
}

static inline struct event node_event(const char *name, const char *model, uint32_t gpus)
{
    struct event ev = { .kind = EVENT_NODE };
    ev.node = (struct event_node){ .name = str_of(name),
                                   .model = str_of(model),
                                   .gpus = gpus,
                                   .gpu_mem_mib = gpus ? 16384 : 0,
                                   .cpu_milli = 16000,
                                   .mem_mib = 65536 };
    return ev;
}

static inline void small_tenant(struct small *s, const char *name)
{
    small_apply(s, tenant_event(name, "", 1));
}

static inline void small_node(struct small *s, const char *name, uint32_t gpus)
{
    small_apply(s, node_event(name, "m", gpus));
}

static inline void small_node_state(struct small *s, const char *name, enum node_state state)
{
    small_apply(s,
                (struct event){ .kind = EVENT_NODE_STATE, .node_state = { str_of(name), state } });
}

static inline struct event submit_event(const struct small *s, const char *tenant, struct request r)
{
    struct event ev = { .kind = EVENT_SUBMIT };
    ev.submit = (struct event_submit){ .id = { s->last + 1 },
                                       .tenant = str_of(tenant),
                                       .user = STR("u"),
                                       .request = r,
                                       .priority = PRIO_NORMAL };
    return ev;
}

static inline uint64_t small_submit(struct small *s, const char *tenant, struct request r)
{
    small_apply(s, submit_event(s, tenant, r));
    return ++s->last;
}

/* One replica with so many whole GPUs. */
static inline uint64_t small_gpus(struct small *s, const char *tenant, uint16_t gpus)
{
    return small_submit(s, tenant, (struct request){ .replicas = 1, .gpus = gpus });
}

static inline void small_job(struct small *s, uint64_t job, enum job_event what)
{
    small_apply(s, (struct event){ .kind = EVENT_JOB, .job = { { job }, what } });
}

/* How many jobs started; small_started says which. */
static inline size_t small_pass(struct small *s)
{
    core_pass(s->c, s->now_ms, &s->a, &s->plan);
    return s->plan.n;
}

static inline size_t small_pass_at(struct small *s, int64_t t_ms)
{
    s->now_ms = t_ms;
    arena_reset(&s->a);
    return small_pass(s);
}

static inline bool small_started(const struct small *s, uint64_t job)
{
    for (size_t i = 0; i < s->plan.n; i++)
        if (s->plan.action[i].job.v == job)
            return true;
    return false;
}

static inline enum job_state small_state(const struct small *s, uint64_t job)
{
    struct job_view j;
    return core_job(s->c, (job_id){ job }, &j) ? j.state : JOB_STATE_COUNT;
}

#endif
