/* Promises: slots that a waiting job has as soon as what holds them has gone.  Such a job is in no
 * group: the pass that made the promise has decided, and nobody else starts in those slots. */
#include "core/state.h"

/* A claim of the job stays until the next pass: what it gives free in the middle of one would be
 * seen by those only who have not had their turn. */
void promise_make(struct core *c, uint32_t job, const struct slot *slots, uint32_t n)
{
    struct job *j = &c->queue.job[job];
    const struct request *r = &c->shapes.at[j->shape].request;
    vec_grow(c->promise, c->promises, c->promise_cap);
    struct promise *p = &c->promise[c->promises++];
    *p = (struct promise){ .job = job, .n = n, .slot = xcalloc(n, sizeof *slots) };
    memcpy(p->slot, slots, n * sizeof *slots);
    p->cost_milli = cluster_cost_milli(&c->cluster, r, slots, n, c->policy.cpu_cost_milli);
    if (j->group != NONE)
        queue_remove(&c->queue, &c->shapes, &c->shares, job);
    j->promised = true;
    cluster_promise(&c->cluster, r, slots, n, true);
    shares_keep(&c->shares, j->leaf, p->cost_milli);
}

void promise_drop(struct core *c, uint32_t job)
{
    struct job *j = &c->queue.job[job];
    if (!j->promised)
        return;
    claims_drop(c, job);
    j->promised = false;
    for (uint32_t i = 0; i < c->promises; i++) {
        struct promise *p = &c->promise[i];
        if (p->job != job)
            continue;
        cluster_promise(&c->cluster, &c->shapes.at[j->shape].request, p->slot, p->n, false);
        shares_keep(&c->shares, j->leaf, -p->cost_milli);
        free(p->slot);
        memmove(c->promise + i, c->promise + i + 1, (c->promises - i - 1) * sizeof *c->promise);
        c->promises--;
        return;
    }
}

bool job_leaves(const struct job *j)
{
    return j->state == JOB_FREEZING || j->state == JOB_STOPPING;
}

uint32_t slots_on(const struct slot *s, uint32_t n, uint32_t node)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++)
        count += s[i].node == node;
    return count;
}

/* Do jobs that stay hold CPUs or memory that it needs on this node?  One that was to leave may have
 * gone on, and hold no GPU. */
static bool node_is_short(const struct core *c, const struct promise *p, uint32_t node)
{
    const struct node *n = &c->cluster.node[node];
    const struct request *r = &c->shapes.at[c->queue.job[p->job].shape].request;
    uint64_t cpu_milli = n->room.cpu_milli, mem_mib = n->room.mem_mib;
    uint64_t need = slots_on(p->slot, p->n, node);
    for (uint32_t i = 0; i < n->jobs; i++) {
        const struct job *j = &c->queue.job[n->job[i]];
        const struct request *held = &c->shapes.at[j->shape].request;
        uint64_t here = job_leaves(j) ? slots_on(j->held->slot, j->held->n, node) : 0;
        cpu_milli += here * held->cpu_milli;
        mem_mib += here * held->mem_mib;
    }
    return cpu_milli < need * r->cpu_milli || mem_mib < need * r->mem_mib;
}

/* Does a job that stays hold a part of this slot? */
static bool slot_is_held(const struct core *c, const struct slot *s)
{
    const struct node *n = &c->cluster.node[s->node];
    for (uint32_t i = 0; i < n->jobs; i++) {
        const struct job *j = &c->queue.job[n->job[i]];
        if (job_leaves(j))
            continue;
        for (uint32_t k = 0; k < j->held->n; k++)
            if (j->held->slot[k].node == s->node && (j->held->slot[k].gpu_mask & s->gpu_mask) &&
                n->room.gpu[__builtin_ctz(s->gpu_mask)] < s->milli)
                return true;
    }
    return false;
}

void promise_break(struct core *c, uint32_t job)
{
    const struct job *j = &c->queue.job[job];
    promise_drop(c, job);
    if (j->state == JOB_QUEUED || (j->state == JOB_FROZEN && j->awake))
        core_wait(c, job);
}

/* Its slots are free, but it may not have them; or its tenant is closed. */
static bool is_over_limit(const struct core *c, const struct promise *p)
{
    const struct job *j = &c->queue.job[p->job];
    if (core_opens_ms(c, j->leaf) != INT64_MIN)
        return true;
    return j->state != JOB_FREEZING &&
           cluster_has_room(&c->cluster, &c->shapes.at[j->shape].request, p->slot, p->n) &&
           !core_may_have(c, j, p->slot, p->n);
}

void promises_review(struct core *c)
{
    for (uint32_t i = 0; i < c->promises;) {
        const struct promise *p = &c->promise[i];
        uint32_t job = p->job;
        const struct request *r = &c->shapes.at[c->queue.job[job].shape].request;
        bool broken = is_over_limit(c, p);
        for (uint32_t k = 0; k < p->n && !broken; k++)
            broken = !node_takes(&c->cluster, &c->cluster.node[p->slot[k].node], r) ||
                     slot_is_held(c, &p->slot[k]) || node_is_short(c, p, p->slot[k].node);
        if (broken)
            promise_break(c, job);
        else
            i++;
    }
}
