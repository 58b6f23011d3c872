/* brute - small generated clusters, and what fits in them by looking at every node: what the core's
 * searches over cells are compared with.  Written apart from core/room.c on purpose. */
#ifndef NS_TESTS_LIB_BRUTE_H
#define NS_TESTS_LIB_BRUTE_H

#include <stdio.h>

#include "base/rng.h"
#include "core/cluster.h"
#include "tests/lib/test.h"

static inline struct request brute_request(struct rng *r, bool gang)
{
    struct request q = { .replicas = 1 };
    switch (rng_below(r, 4)) {
    case 0: q.gpu_milli = (uint16_t)rng_between(r, 1, 999); break;
    case 1: q.gpu_mem_mib = rng_between(r, 1, 30) * 1000; break;
    default: q.gpus = (uint16_t)rng_below(r, 5); break;
    }
    q.cpu_milli = rng_below(r, 3) ? rng_below(r, 12) * 1000 : 0;
    q.mem_mib = rng_below(r, 3) ? rng_below(r, 12) * 1000 : 0;
    q.models = rng_below(r, 4) ? 0 : rng_between(r, 1, 3);
    q.linked = q.gpus > 1 && rng_below(r, 2);
    if (gang) {
        q.replicas = rng_between(r, 2, 9);
        q.scope = (uint8_t)rng_below(r, SCOPE_COUNT);
        q.layout = (uint8_t)rng_below(r, LAYOUT_COUNT);
    }
    return q;
}

/* Nodes of a few builds, some without GPUs, some behind switches, some down; about half in use. */
static inline void brute_cluster(struct rng *r, struct cluster *c, uint32_t nodes)
{
    static const struct {
        const char *model;
        uint32_t gpus, gpu_mem_mib, cpu_milli, mem_mib;
    } builds[] = { { "a", 4, 24000, 32000, 32000 },
                   { "b", 2, 16000, 8000, 64000 },
                   { "a", 8, 24000, 16000, 16000 },
                   { "", 0, 0, 16000, 16000 } };
    struct err e;
    for (uint32_t i = 0; i < nodes; i++) {
        char name[16], behind[16];
        uint32_t b = rng_below(r, ARRAY_LEN(builds));
        snprintf(name, sizeof name, "n%u", i);
        snprintf(behind, sizeof behind, "s%u", i / 5);
        struct event_node n = { .name = str_of(name),
                                .model = str_of(builds[b].model),
                                .net_switch = str_of(rng_below(r, 3) ? behind : ""),
                                .gpus = builds[b].gpus,
                                .gpu_mem_mib = builds[b].gpu_mem_mib,
                                .cpu_milli = builds[b].cpu_milli,
                                .mem_mib = builds[b].mem_mib };
        for (uint32_t g = 0; g < n.gpus && b == 0; g++)
            n.link[g] = (uint8_t)(g % 2);
        CHECK(cluster_add_node(c, &n, &e) == 0);
    }
}

/* Takes single replicas at random places, so that every free part and mixture turns up. */
static inline void brute_use(struct rng *r, struct cluster *c, uint32_t tries)
{
    for (uint32_t i = 0; i < tries; i++) {
        struct request q = brute_request(r, false);
        struct slot s = { .node = rng_below(r, c->nodes) };
        const struct node *n = &c->node[s.node];
        const struct kind *k = &c->kind[n->kind];
        if (!room_replicas(k, &n->room, &q, 1))
            continue;
        s.gpu_mask = room_pick(k, &n->room, &q);
        s.milli = (uint16_t)(q.gpus ? GPU_MILLI : s.gpu_mask ? kind_share_milli(k, &q) : 0);
        cluster_take(c, &q, &s, 1);
    }
}

static inline uint32_t brute_gpu_fits(const struct kind *k, const struct room *m,
                                      const struct request *q)
{
    uint32_t whole[GPUS_PER_NODE_MAX] = { 0 }, all = 0, n = 0;
    uint64_t part = q->gpu_milli;
    if (q->gpu_mem_mib && k->gpu_mem_mib)
        part = MAX(part, ((uint64_t)q->gpu_mem_mib * 1000 + k->gpu_mem_mib - 1) / k->gpu_mem_mib);
    if (q->gpu_mem_mib > k->gpu_mem_mib)
        return 0;
    for (uint32_t g = 0; g < k->gpus; g++) {
        n += q->gpus ? 0 : (uint32_t)(m->gpu[g] / part);
        whole[k->link[g]] += m->gpu[g] == 1000;
        all += m->gpu[g] == 1000;
    }
    for (uint32_t l = 0; l < k->gpus && q->gpus && q->linked; l++)
        n += whole[l] / q->gpus;
    return q->gpus && !q->linked ? all / q->gpus : n;
}

/* How many replicas this room holds. */
static inline uint32_t brute_fits(const struct kind *k, const struct room *m,
                                  const struct request *q)
{
    uint32_t n = q->layout == LAYOUT_SPREAD ? 1 : q->replicas;
    if (q->models && !(q->models & UINT64_C(1) << k->model))
        return 0;
    if (q->cpu_milli)
        n = MIN(n, m->cpu_milli / q->cpu_milli);
    if (q->mem_mib)
        n = MIN(n, m->mem_mib / q->mem_mib);
    if (q->gpus || q->gpu_milli || q->gpu_mem_mib)
        n = MIN(n, brute_gpu_fits(k, m, q));
    for (uint32_t i = 0; i < DEVICES_EACH && q->device[i]; i++) {
        uint32_t free = 0;
        for (uint32_t j = 0; j < DEVICES_EACH; j++)
            free += k->device[j] == q->device[i] ? m->device[j] : 0;
        n = MIN(n, free / q->device_n[i]);
    }
    return n;
}

/* In what the nodes offer (idle: on all nodes, as if nothing ran), does the gang fit? */
static inline bool brute_gang_fits(const struct cluster *c, const struct request *q, bool idle)
{
    uint64_t all = 0, behind[256] = { 0 };
    for (uint32_t i = 0; i < c->nodes; i++) {
        const struct node *n = &c->node[i];
        const struct kind *k = &c->kind[n->kind];
        struct room m = idle ? kind_room(k) : n->offer;
        if (!idle && n->state != NODE_UP)
            continue;
        uint32_t fits = brute_fits(k, &m, q);
        all += fits;
        if (n->net_switch != NONE)
            behind[n->net_switch] += fits;
        if (fits >= q->replicas || (n->net_switch != NONE && q->scope == SCOPE_SWITCH &&
                                    behind[n->net_switch] >= q->replicas))
            return true;
    }
    return q->scope == SCOPE_ANY && all >= q->replicas;
}

#endif
