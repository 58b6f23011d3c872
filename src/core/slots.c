/* Slots of a job and the machines they are on: whether they suit, are free, and what they cost. */
#include "core/device.h"

/* Is the slot what a replica takes on this kind of node?  A journal may say anything. */
static bool slot_suits(const struct kind *k, const struct request *r, const struct slot *s)
{
    bool shares = request_shares_gpu(r);
    uint32_t links = 0;
    if (!kind_allows(k, r) || s->gpu_mask >> k->gpus)
        return false;
    for (uint32_t left = s->gpu_mask; left; left &= left - 1)
        links |= 1u << k->link[__builtin_ctz(left)];
    if (r->linked && links & (links - 1))
        return false;
    return __builtin_popcount(s->gpu_mask) == (shares ? 1 : r->gpus) &&
           s->milli == (shares    ? kind_share_milli(k, r)
                        : r->gpus ? GPU_MILLI
                                  : 0);
}

/* Takes one slot out of the room if all of it is free there. */
static bool take_slot(const struct kind *k, struct room *m, const struct request *r,
                      const struct slot *s)
{
    if (m->cpu_milli < r->cpu_milli || m->mem_mib < r->mem_mib)
        return false;
    for (uint32_t left = s->gpu_mask; left; left &= left - 1)
        if (m->gpu[__builtin_ctz(left)] < s->milli)
            return false;
    if (request_has_devices(r) && room_devices(k, m, r, 1) == 0)
        return false;
    room_take(k, m, r, s->gpu_mask, s->milli);
    return true;
}

bool cluster_suits(const struct cluster *c, const struct request *r, const struct slot *s,
                   uint32_t n)
{
    bool suits = n == r->replicas;
    for (uint32_t i = 0; i < n && suits; i++)
        suits = s[i].node < c->nodes && (i == 0 || s[i].node >= s[i - 1].node) &&
                slot_suits(&c->kind[c->node[s[i].node].kind], r, &s[i]);
    return suits;
}

static bool has_room(const struct cluster *c, const struct request *r, const struct slot *s,
                     uint32_t n, bool offered)
{
    struct room m = { 0 };
    for (uint32_t i = 0; i < n; i++) {
        if (s[i].node >= c->nodes || (i && s[i].node < s[i - 1].node))
            return false; /* slots of one node stand together, in order of nodes */
        if (i == 0 || s[i].node != s[i - 1].node)
            m = offered ? c->node[s[i].node].offer : c->node[s[i].node].room;
        const struct kind *k = &c->kind[c->node[s[i].node].kind];
        if (!slot_suits(k, r, &s[i]) || !take_slot(k, &m, r, &s[i]))
            return false;
    }
    return true;
}

bool cluster_has_room(const struct cluster *c, const struct request *r, const struct slot *s,
                      uint32_t n)
{
    return has_room(c, r, s, n, false);
}

bool cluster_offers(const struct cluster *c, const struct request *r, const struct slot *s,
                    uint32_t n)
{
    return has_room(c, r, s, n, true);
}

int64_t cluster_cost_milli(const struct cluster *c, const struct request *r, const struct slot *s,
                           uint32_t n, int64_t cpu_cost_milli)
{
    int64_t gpu_cost = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t held = (uint64_t)__builtin_popcount(s[i].gpu_mask) * s[i].milli;
        uint32_t model = c->kind[c->node[s[i].node].kind].model;
        gpu_cost += (int64_t)(held * c->model_cost_milli[model] / 1000);
    }
    if (request_has_devices(r))
        gpu_cost += (int64_t)n * (int64_t)devices_worth_milli(c, r);
    return gpu_cost + (int64_t)n * r->cpu_milli * cpu_cost_milli / 1000;
}
