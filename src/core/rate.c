/* What runs, rated: what it is worth now, when it will end, whether it may well end soon. */
#include "core/state.h"

#define SOON 0.25 /* of the cases: an express job may well end in its time */
#define DERIVE_MS (10 * 60 * INT64_C(1000)) /* what the history says changes slowly */
#define RATE_MS (30 * INT64_C(1000))        /* what runs grows older */

uint32_t core_tenant(const struct core *c, const struct job *j)
{
    return c->shares.at[j->leaf].parent;
}

struct history_of core_of(const struct core *c, const struct job *j)
{
    return (struct history_of){ .tenant = core_tenant(c, j),
                                .size = c->shapes.at[j->shape].size,
                                .user = j->leaf,
                                .family = j->family };
}

double core_worth(const struct core *c, struct rows_seen *seen, uint32_t leaf, uint32_t shape,
                  const struct user_group *u)
{
    const struct shape *sh = &c->shapes.at[shape];
    struct history_of of = { c->shares.at[leaf].parent, sh->size, leaf, u->family };
    if (!of.family && !seen->row[of.size])
        seen->row[of.size] = history_row(&c->history, of);
    const struct history_row *row = of.family ? history_row(&c->history, of) : seen->row[of.size];
    return row->worth[u->stage] / sh->weight * window_worth(c, &sh->request);
}

int64_t core_ran_ms(const struct job *j, int64_t now_ms)
{
    return j->ran_ms + (j->held ? MAX(now_ms - j->held->since_ms, INT64_C(0)) : 0);
}

/* How long it will run on; never past its limit, whatever is known of others. */
static int64_t left_ms(const struct job *j, const struct history_row *row, int64_t ran_ms,
                       double part)
{
    int64_t left = history_left_ms(row, ran_ms, part), most = MAX(j->limit_ms - ran_ms, INT64_C(0));
    return j->limit_ms ? MIN(left, most) : left;
}

int64_t core_end_ms(const struct core *c, const struct job *j, double part)
{
    const struct history_row *row = history_row(&c->history, core_of(c, j));
    return c->now_ms + left_ms(j, row, core_ran_ms(j, c->now_ms), part);
}

static bool is_express(const struct core *c, const struct job *j, const struct history_row *row)
{
    int64_t ran_ms = core_ran_ms(j, c->now_ms);
    double gpus = (double)core_amounts(c, &c->shapes.at[j->shape].request).of[RES_GPU] / GPU_MILLI;
    double most_ms =
        history_mean_work_ms(&c->history) * (double)c->policy.express_part_milli / 1000;
    return (double)(ran_ms + left_ms(j, row, ran_ms, SOON)) * gpus < most_ms;
}

bool core_is_express(const struct core *c, const struct job *j)
{
    return is_express(c, j, history_row(&c->history, core_of(c, j)));
}

/* What a job that runs is worth now, and its class: lifted for as long as it had waited. */
void core_rate(struct core *c, struct job *j)
{
    const struct history_row *row = history_row(&c->history, core_of(c, j));
    struct held *h = j->held;
    struct share *leaf = &c->shares.at[j->leaf];
    int64_t waited = h->since_ms - j->wait_ms;
    uint32_t lift = (uint32_t)MIN(waited / c->policy.age_step_ms, c->policy.age_max_steps);
    uint32_t bin = history_bin(core_ran_ms(j, c->now_ms));
    h->rank = j->priority + (c->now_ms - h->since_ms < waited ? lift : 0);
    const struct shape *sh = &c->shapes.at[j->shape];
    h->worth = (float)(row->worth[bin] / sh->weight * window_worth(c, &sh->request));
    h->overdue = waited >= c->policy.claim_after_ms && c->now_ms - h->since_ms < waited;
    h->express = is_express(c, j, row);
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
    for (uint32_t i = 0; i < c->queue.holders; i++) {
        const struct job *j = &c->queue.job[c->queue.holder[i]];
        history_derive_running(h, core_of(c, j), j->ran_ms, core_ran_ms(j, c->now_ms));
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
    for (uint32_t i = 0; i < c->queue.holders; i++)
        core_rate(c, &c->queue.job[c->queue.holder[i]]);
}
