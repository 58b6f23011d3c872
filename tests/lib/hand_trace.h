/* hand_trace - traces written by hand: nodes of 8 GPUs and 8 CPUs, jobs in rows, two tenants. */
#ifndef NS_TESTS_LIB_HAND_TRACE_H
#define NS_TESTS_LIB_HAND_TRACE_H

#include "simulate/replay.h"
#include "tests/lib/test.h"

struct hand_row {
    uint64_t id;
    int submit_s;
    uint32_t gpus;
    int duration_s;
    uint32_t tenant;
    int start_s; /* wanted */
};

static inline void hand_tenants(struct trace *t, uint32_t n)
{
    t->tenant = arena_array(&t->arena, struct trace_tenant, n);
    t->tenants = n;
    for (uint32_t i = 0; i < n; i++)
        t->tenant[i] = (struct trace_tenant){ .name = arena_printf(&t->arena, "t%u", i),
                                              .parent = "",
                                              .weight_milli = 1000,
                                              .limit = AMOUNTS_NO_LIMIT };
}

static inline struct trace_job hand_job(const struct hand_row *r, uint32_t nodes)
{
    const struct trace_rack racks[2] = { { nodes, 8 } };
    struct trace_job j = { .id = r->id,
                           .submit_ms = r->submit_s * 1000,
                           .duration_ms = r->duration_s * 1000,
                           .tenant = r->tenant,
                           .user = "u",
                           .models = "",
                           .gpus = r->gpus,
                           .priority = PRIO_NORMAL,
                           .request = { .replicas = 1 } };
    uint32_t each = r->gpus;
    CHECK(r->gpus == 0 || trace_split(r->gpus, racks, &j.request.replicas, &each));
    j.request.gpus = (uint16_t)each;
    j.request.layout = j.request.replicas > 1 ? LAYOUT_FEWEST : LAYOUT_PACK;
    return j;
}

static inline struct trace hand_trace(uint32_t nodes, const struct hand_row *row, uint32_t n)
{
    struct trace t = { .name = "hand", .nodes = nodes, .jobs = n };
    struct err e = { 0 };
    hand_tenants(&t, 2);
    t.node = arena_array(&t.arena, struct event_node, nodes);
    for (uint32_t i = 0; i < nodes; i++)
        t.node[i] = (struct event_node){ .name = str_of(arena_printf(&t.arena, "n%u", i)),
                                         .model = STR("gpu"),
                                         .gpus = 8,
                                         .gpu_mem_mib = 1000,
                                         .cpu_milli = 8000,
                                         .mem_mib = 8000 };
    t.job = arena_array(&t.arena, struct trace_job, n);
    for (uint32_t i = 0; i < n; i++)
        t.job[i] = hand_job(&row[i], nodes);
    CHECK(trace_finish(&t, &e) == 0);
    return t;
}

static inline struct outcome hand_replay(struct trace *t, const char *policy)
{
    struct replay_options o = { .policy = policy, .freeze_cost_milli = 1000 };
    struct report r;
    struct outcome jobs;
    struct err e = { 0 };
    if (replay_run(t, &o, &r, &jobs, &e) < 0)
        test_fail(__FILE__, __LINE__, "%s: %s", policy, e.msg);
    return jobs;
}

#endif
