/* The arithmetic of one node's room: does a replica fit, which GPUs does it take. */
#include "core/cluster.h"
#include "core/window.h"

uint32_t kind_share_milli(const struct kind *k, const struct request *r)
{
    uint64_t milli = r->gpu_milli;
    if (r->gpu_mem_mib) {
        if (k->gpu_mem_mib == 0)
            return 0;
        uint64_t by_mem =
            ((uint64_t)r->gpu_mem_mib * GPU_MILLI + k->gpu_mem_mib - 1) / k->gpu_mem_mib;
        milli = MAX(milli, by_mem);
    }
    return milli <= GPU_MILLI ? (uint32_t)milli : 0;
}

uint32_t cluster_most_share_milli(const struct cluster *c, const struct request *r)
{
    uint32_t most = 0;
    if (r->gpu_mem_mib == 0)
        return r->gpu_milli;
    for (uint32_t k = 0; k < c->kinds && request_shares_gpu(r); k++)
        if (kind_allows(&c->kind[k], r))
            most = MAX(most, kind_share_milli(&c->kind[k], r));
    return most;
}

bool kind_allows(const struct kind *k, const struct request *r)
{
    if (k->nodes == 0 || r->cpu_milli > k->cpu_milli || r->mem_mib > k->mem_mib)
        return false;
    if (r->models && !(r->models >> k->model & 1))
        return false;
    if (request_has_devices(r) && !kind_has_devices(k, r))
        return false;
    if (request_shares_gpu(r))
        return k->gpus > 0 && kind_share_milli(k, r) > 0;
    return r->gpus == 0 || (r->gpus <= k->gpus && r->gpu_mem_mib <= k->gpu_mem_mib);
}

bool kind_takes(const struct kind *k, const struct request *r)
{
    return window_takes_in(k, r, 0) && kind_allows(k, r);
}

struct room kind_room(const struct kind *k)
{
    struct room m = { .cpu_milli = k->cpu_milli, .mem_mib = k->mem_mib };
    for (int g = 0; g < k->gpus; g++)
        m.gpu[g] = GPU_MILLI;
    memcpy(m.device, k->device_n, sizeof m.device);
    return m;
}

static void whole_by_link(const struct kind *k, const struct room *m,
                          uint8_t whole[GPUS_PER_NODE_MAX])
{
    memset(whole, 0, GPUS_PER_NODE_MAX);
    for (int g = 0; g < k->gpus; g++)
        whole[k->link[g]] = (uint8_t)(whole[k->link[g]] + (m->gpu[g] == GPU_MILLI));
}

static uint32_t gpu_replicas(const struct kind *k, const struct room *m, const struct request *r)
{
    uint32_t n = 0;
    if (request_shares_gpu(r)) {
        uint32_t milli = kind_share_milli(k, r);
        for (int g = 0; milli && g < k->gpus; g++)
            n += m->gpu[g] / milli;
        return n;
    }
    if (r->linked && k->links > 1) {
        uint8_t whole[GPUS_PER_NODE_MAX];
        whole_by_link(k, m, whole);
        for (int l = 0; l < k->links; l++)
            n += whole[l] / r->gpus;
        return n;
    }
    for (int g = 0; g < k->gpus; g++)
        n += m->gpu[g] == GPU_MILLI ? 1u : 0u;
    return n / r->gpus;
}

uint32_t room_replicas(const struct kind *k, const struct room *m, const struct request *r,
                       uint32_t max)
{
    uint32_t n = max;
    if (r->cpu_milli)
        n = MIN(n, m->cpu_milli / r->cpu_milli);
    if (r->mem_mib)
        n = MIN(n, m->mem_mib / r->mem_mib);
    if (n == 0 || !kind_allows(k, r))
        return 0;
    if (r->gpus || request_shares_gpu(r))
        n = MIN(n, gpu_replicas(k, m, r));
    if (request_has_devices(r))
        n = room_devices(k, m, r, n);
    return n;
}

/* The fullest GPU that still has room; among equals the one whose link group is the fullest. */
static uint16_t pick_share(const struct kind *k, const struct room *m, uint32_t milli)
{
    uint8_t whole[GPUS_PER_NODE_MAX];
    whole_by_link(k, m, whole);
    int best = -1;
    for (int g = 0; g < k->gpus; g++) {
        if (m->gpu[g] < milli)
            continue;
        if (best < 0 || m->gpu[g] < m->gpu[best] ||
            (m->gpu[g] == m->gpu[best] && whole[k->link[g]] < whole[k->link[best]]))
            best = g;
    }
    return best < 0 ? 0 : (uint16_t)(1u << best);
}

/* The link group with the fewest free GPUs that holds all; else groups from the fullest down. */
static uint16_t pick_whole(const struct kind *k, const struct room *m, uint32_t need)
{
    uint8_t whole[GPUS_PER_NODE_MAX];
    whole_by_link(k, m, whole);
    uint16_t mask = 0;
    while (need) {
        int best = -1;
        for (int l = 0; l < k->links; l++) {
            if (whole[l] == 0)
                continue;
            bool fits = whole[l] >= need, best_fits = best >= 0 && whole[best] >= need;
            if (best < 0 || (fits && (!best_fits || whole[l] < whole[best])) ||
                (!fits && !best_fits && whole[l] > whole[best]))
                best = l;
        }
        if (best < 0)
            return 0;
        for (int g = 0; g < k->gpus && need; g++)
            if (k->link[g] == best && m->gpu[g] == GPU_MILLI) {
                mask = (uint16_t)(mask | (1u << g));
                need--;
            }
        whole[best] = 0;
    }
    return mask;
}

uint16_t room_pick(const struct kind *k, const struct room *m, const struct request *r)
{
    if (request_shares_gpu(r))
        return pick_share(k, m, kind_share_milli(k, r));
    return r->gpus ? pick_whole(k, m, r->gpus) : 0;
}

void room_take(const struct kind *k, struct room *m, const struct request *r, uint16_t mask,
               uint32_t milli)
{
    for (uint32_t left = mask; left; left &= left - 1)
        m->gpu[__builtin_ctz(left)] = (uint16_t)(m->gpu[__builtin_ctz(left)] - milli);
    m->cpu_milli -= r->cpu_milli;
    m->mem_mib -= r->mem_mib;
    if (request_has_devices(r))
        room_move_devices(k, m, r, true);
}

void room_give(const struct kind *k, struct room *m, const struct request *r, uint16_t mask,
               uint32_t milli)
{
    for (uint32_t left = mask; left; left &= left - 1)
        m->gpu[__builtin_ctz(left)] = (uint16_t)(m->gpu[__builtin_ctz(left)] + milli);
    m->cpu_milli += r->cpu_milli;
    m->mem_mib += r->mem_mib;
    if (request_has_devices(r))
        room_move_devices(k, m, r, false);
}
