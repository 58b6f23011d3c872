/* Who may be frozen for whom: a job of another share when the own share is below that one even
 * afterwards, counted at the fork of the tree where the two part; a job of the same user when it is
 * of a lower class, or worth less by a margin.  Nobody is taken below a guarantee. */
#include "core/taker.h"

#define LOST_MS 600000.0 /* work that a freeze loses: so much of it counts like a GPU taken */
#define RESTS_MAX 12     /* times that a job's rest after a thaw grows */
#define WAITED_PARTS 8   /* of the time it had waited, one is its rest at least */

/* 0, the root, is no fork: it has not been looked at.  At most as deep as the tree; parents mostly
 * stand before their children, which is one step. */
static uint32_t fork_of(const struct shares *s, uint32_t i, uint32_t *fork)
{
    if (fork[i] == 0) {
        uint32_t up = fork_of(s, s->at[i].parent, fork);
        fork[i] = up == NONE ? i : up;
    }
    return fork[i];
}

/* For each share, the one at whose fork it parts from `leaf`; NONE on the way up itself. */
static void find_forks(const struct shares *s, uint32_t leaf, uint32_t *fork)
{
    memset(fork, 0, s->n * sizeof *fork);
    for (uint32_t i = leaf; i != NONE; i = s->at[i].parent)
        fork[i] = NONE;
    for (uint32_t i = 1; i < s->n; i++)
        fork_of(s, i, fork);
}

/* How much may be taken of the share at a fork so that the taker's side stays at or below it. */
static int64_t allowance(const struct shares *s, uint32_t mine, uint32_t other, int64_t cost_milli,
                         double times)
{
    const struct share *x = &s->at[mine], *y = &s->at[other];
    double above_x = share_above(s, mine, cost_milli), above_y = share_above(s, other, 0);
    double most = above_y - above_x * y->weight_milli / x->weight_milli / times;
    int64_t present = y->cost_milli + y->kept_milli - y->guarantee_milli;
    most *= times; /* what an express job takes counts as little as what it gets */
    if (most <= 0)
        return 0;
    return most >= (double)present ? present : (int64_t)most;
}

/* Fills fork, allowed and taken; false when nobody of another share may be frozen. */
static bool find_rights(struct taker *t, int64_t cost_milli)
{
    const struct shares *s = &t->c->shares;
    struct take_scratch *k = t->s;
    bool any = false;
    double times = (double)t->c->policy.express_milli / 1000;
    if (k->share_cap < s->cap) {
        k->share_cap = s->cap;
        k->fork = xrealloc(k->fork, s->cap, sizeof *k->fork);
        k->allowed[0] = xrealloc(k->allowed[0], s->cap, sizeof *k->allowed[0]);
        k->allowed[1] = xrealloc(k->allowed[1], s->cap, sizeof *k->allowed[1]);
        k->taken = xrealloc(k->taken, s->cap, sizeof *k->taken);
    }
    find_forks(s, t->j->leaf, k->fork);
    for (uint32_t mine = t->j->leaf; mine != SHARE_ROOT; mine = s->at[mine].parent)
        for (uint32_t i = 1; i < s->n; i++) {
            if (k->fork[i] != i || s->at[i].parent != s->at[mine].parent)
                continue;
            k->allowed[0][i] = k->allowed[1][i] = 0;
            if (s->at[i].cost_milli == 0)
                continue;
            k->allowed[0][i] = allowance(s, mine, i, cost_milli, t->express ? times : 1);
            k->allowed[1][i] = allowance(s, mine, i, cost_milli, t->express ? 1 : 1 / times);
            any = any || k->allowed[0][i] > 0;
        }
    return any;
}

/* The more often it was taken back, and the longer it had waited, the longer it is left alone. */
static int64_t rest_ms(const struct policy *p, const struct job *v)
{
    int64_t rest_ms = v->taken ? p->thaw_run_ms * MIN(v->taken, RESTS_MAX) : p->min_run_ms;
    return MAX(rest_ms, (v->held->since_ms - v->wait_ms) / WAITED_PARTS);
}

/* A job that runs and can be frozen now. */
bool taker_can_freeze(const struct taker *t, uint32_t job)
{
    const struct job *v = &t->c->queue.job[job];
    const struct policy *p = &t->c->policy;
    return v->state == JOB_RUNNING && v->thaw_cost_ms && !v->promised &&
           t->s->job_mark[job] != t->s->epoch && t->c->now_ms - v->held->since_ms >= rest_ms(p, v);
}

/* Would it take the job's share, or one above it up to the fork, below its guarantee? */
static bool breaks_guarantee(const struct taker *t, const struct job *v)
{
    for (uint32_t i = v->leaf; t->s->fork[i] != NONE; i = t->c->shares.at[i].parent) {
        const struct share *s = &t->c->shares.at[i];
        int64_t left = s->cost_milli + s->kept_milli - t->s->taken[i] - v->held->cost_milli;
        if (s->guarantee_milli && left < s->guarantee_milli)
            return true;
    }
    return false;
}

bool taker_may_take(const struct taker *t, const struct job *v)
{
    uint32_t fork = t->s->fork[v->leaf];
    if (breaks_guarantee(t, v))
        return false;
    if (t->overdue && !v->held->overdue && v->leaf != t->j->leaf)
        return true;
    if (v->held->guest && t->j->has_claim)
        return true;
    if (v->leaf == t->j->leaf) {
        if (v->held->rank != t->rank)
            return t->rank > v->held->rank;
        return t->worth * 1000 > (double)v->held->worth * (double)t->c->policy.take_gain_milli;
    }
    return v->held->cost_milli <= t->s->allowed[v->held->express][fork] - t->s->taken[fork];
}

/* Is there anything at all that it may take?  The cheap way to say no. */
bool taker_has_rights(struct taker *t)
{
    const struct share *leaf = &t->c->shares.at[t->j->leaf];
    int64_t cost_milli = core_next_cost_milli(t->c, t->r);
    t->c->take_looks += t->c->shares.n;
    bool others = find_rights(t, cost_milli);
    bool own = leaf->least_rank < t->rank ||
               (leaf->least_rank == t->rank &&
                t->worth * 1000 > (double)leaf->least_worth * (double)t->c->policy.take_gain_milli);
    return others || (own && leaf->cost_milli);
}

double taker_gpus_of(const struct held *h)
{
    return (double)h->gpu_milli / GPU_MILLI;
}

double taker_harm_of(const struct taker *t, const struct job *v)
{
    double ratio = (double)v->held->worth / t->worth;
    int64_t lost_ms = v->thaw_cost_ms + (v->restarts ? core_ran_ms(v, t->c->now_ms) : 0);
    return FREEZE_HARM +
           taker_gpus_of(v->held) * (0.5 + MIN(ratio, 4.0) + (double)lost_ms / LOST_MS);
}
