/* What runs, rated: what it is worth now, when it will end, whether it may well end soon. */
#include "core/state.h"

#define SOON 0.25 /* of the cases: an express job may well end in its time */
#define DERIVE_MS (10 * 60 * INT64_C(1000)) /* what the history says changes slowly */
#define RATE_MS (30 * INT64_C(1000))        /* what runs grows older */

uint32_t core_tenant(const struct core *c, const struct job *j)
{
    return c->shares.at[j->leaf].parent;
}

int64_t core_ran_ms(const struct job *j, int64_t now_ms)
{
    return j->ran_ms + (j->held ? MAX(now_ms - j->held->since_ms, INT64_C(0)) : 0);
}

int64_t core_end_ms(const struct core *c, const struct job *j, double part)
{
    const struct request *r = &c->shapes.at[j->shape].request;
    int64_t ran_ms = core_ran_ms(j, c->now_ms);
    int64_t left_ms =
        history_left_ms(&c->history, core_tenant(c, j), history_size(r), ran_ms, part);
    if (j->limit_ms && left_ms > j->limit_ms - ran_ms)
        left_ms = MAX(j->limit_ms - ran_ms, INT64_C(0));
    return c->now_ms + left_ms;
}

bool core_is_express(const struct core *c, const struct job *j)
{
    const struct request *r = &c->shapes.at[j->shape].request;
    const struct history *h = &c->history;
    int64_t ran_ms = core_ran_ms(j, c->now_ms);
    int64_t left_ms = history_left_ms(h, core_tenant(c, j), history_size(r), ran_ms, SOON);
    double gpus = (double)core_amounts(c, r).of[RES_GPU] / GPU_MILLI;
    double most_ms = history_mean_work_ms(h) * (double)c->policy.express_part_milli / 1000;
    return (double)(ran_ms + left_ms) * gpus < most_ms;
}

/* What a job that runs is worth now, and its class: lifted for as long as it had waited. */
void core_rate(struct core *c, struct job *j)
{
    const struct request *r = &c->shapes.at[j->shape].request;
    struct held *h = j->held;
    struct share *leaf = &c->shares.at[j->leaf];
    int64_t waited = h->since_ms - j->wait_ms;
    uint32_t lift = (uint32_t)MIN(waited / c->policy.age_step_ms, c->policy.age_max_steps);
    uint32_t bin = history_bin(core_ran_ms(j, c->now_ms));
    h->rank = j->priority + (c->now_ms - h->since_ms < waited ? lift : 0);
    double worth = history_worth(&c->history, core_tenant(c, j), history_size(r), bin);
    h->worth = (float)(worth / history_gpus_weight(r) * window_worth(c, r));
    h->overdue = waited >= c->policy.claim_after_ms && c->now_ms - h->since_ms < waited;
    h->express = core_is_express(c, j);
    if (h->rank < leaf->least_rank ||
        (h->rank == leaf->least_rank && h->worth < leaf->least_worth)) {
        leaf->least_rank = h->rank;
        leaf->least_worth = h->worth;
    }
}

static void derive_history(struct core *c)
{
    struct history *h = &c->history;
    history_derive_begin(h);
    for (uint32_t i = 0; i < c->queue.jobs; i++) {
        const struct job *j = &c->queue.job[i];
        if (j->held)
            history_derive_running(h, core_tenant(c, j),
                                   history_size(&c->shapes.at[j->shape].request), j->ran_ms,
                                   core_ran_ms(j, c->now_ms));
    }
    history_derive_done(h);
    c->history_ms = c->now_ms + DERIVE_MS;
    c->windows_changed = true;
}

void core_learn(struct core *c)
{
    if (c->now_ms >= c->history_ms)
        derive_history(c);
    if (c->now_ms < c->rate_ms)
        return;
    c->rate_ms = c->now_ms + RATE_MS;
    for (uint32_t i = 0; i < c->shares.n; i++)
        c->shares.at[i].least_rank = UINT32_MAX;
    for (uint32_t i = 0; i < c->queue.jobs; i++)
        if (c->queue.job[i].held)
            core_rate(c, &c->queue.job[i]);
}
