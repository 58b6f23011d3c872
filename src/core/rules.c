#include "core/rules.h"

#include "core/allow.h"
#include "core/state.h"

/* ---- budgets ---- */

/* held × time; a journal may say times that make it absurd, never negative. */
static int64_t gpu_time(uint64_t held_milli, int64_t from_ms, int64_t to_ms)
{
    int64_t sum;
    if (to_ms <= from_ms) /* also before the first event has a time */
        return 0;
    return __builtin_mul_overflow(held_milli, to_ms - from_ms, &sum) ? BUDGET_MAX
                                                                     : MIN(sum, BUDGET_MAX);
}

static int64_t both(int64_t a, int64_t b)
{
    return MIN(a + b, BUDGET_MAX);
}

static int64_t spent_at(const struct budget *b, uint64_t held_milli, int64_t now_ms)
{
    int64_t from_ms = MAX(b->at_ms, b->from_ms), to_ms = MIN(now_ms, b->until_ms);
    return both(b->spent, gpu_time(held_milli, from_ms, to_ms));
}

static void settle(struct rules *r, int64_t now_ms)
{
    struct budget *b = &r->budget;
    if (b->most == 0 || now_ms <= b->at_ms)
        return;
    int64_t late = rules_late(r, now_ms);
    b->spent = spent_at(b, r->held_milli, now_ms);
    b->late = late;
    b->at_ms = now_ms;
}

int64_t rules_late(const struct rules *r, int64_t now_ms)
{
    const struct budget *b = &r->budget;
    return both(b->late, gpu_time(r->held_milli, MAX(b->at_ms, b->until_ms), now_ms));
}

int64_t rules_spent(const struct rules *r, int64_t now_ms)
{
    return r->budget.most ? spent_at(&r->budget, r->held_milli, now_ms) : 0;
}

/* What runs now has spent since then. */
static int64_t held_since(const struct core *c, uint32_t share, int64_t from_ms, int64_t now_ms)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < c->queue.holders; i++) {
        const struct job *j = &c->queue.job[c->queue.holder[i]];
        if (share_is_below(&c->shares, j->leaf, share))
            sum = both(sum, gpu_time(j->held->gpu_milli, MAX(from_ms, j->held->since_ms), now_ms));
    }
    return sum;
}

/* A period that follows begins with what was spent since the last one; any other with what runs
 * has had: of what ended before, only whoever keeps the budget knows (EVENT_PAST). */
static void set_budget(struct core *c, uint32_t share, const struct event_tenant *t, int64_t now_ms)
{
    struct budget *b = &c->shares.at[share].rules->budget, was = *b;
    *b = (struct budget){ .most = t->budget_gpu_milli_ms,
                          .from_ms = t->budget_from_ms,
                          .until_ms = t->budget_until_ms,
                          .at_ms = now_ms };
    if (b->most == 0)
        *b = (struct budget){ 0 };
    else if (was.most && was.from_ms == b->from_ms)
        b->spent = b->until_ms > was.until_ms ? both(was.spent, was.late) : was.spent;
    else if (was.most && was.until_ms == b->from_ms)
        b->spent = was.late;
    else
        b->spent = held_since(c, share, b->from_ms, now_ms);
}

void rules_set_spent(struct core *c, uint32_t share, const struct event_past *p, int64_t now_ms)
{
    struct rules *r = c->shares.at[share].rules;
    if (!r || r->budget.most == 0)
        return;
    r->budget.spent = p->spent;
    r->budget.late = p->late;
    r->budget.at_ms = now_ms;
}

/* ---- setting them ---- */

struct rules *rules_free(struct rules *r)
{
    if (!r)
        return NULL;
    for (uint32_t i = 0; i < r->caps; i++)
        free(r->cap[i].names);
    free(r->pools);
    free(r);
    return NULL;
}

static char *copy(struct str s)
{
    char *text = xcalloc(1, s.n + 1);
    memcpy(text, s.p, s.n);
    return text;
}

static bool has_any(const struct event_tenant *t)
{
    return t->model_limits || t->pools.n || t->until_ms || t->budget_gpu_milli_ms;
}

void rules_set(struct core *c, uint32_t share, const struct event_tenant *t, int64_t now_ms)
{
    struct share *sh = &c->shares.at[share];
    if (sh->rules)
        settle(sh->rules, now_ms);
    c->shares.ruled += has_any(t);
    c->shares.ruled -= !!sh->rules;
    if (!has_any(t)) {
        sh->rules = rules_free(sh->rules);
        return;
    }
    struct rules *r = xcalloc(1, sizeof *r);
    if (sh->rules)
        r->budget = sh->rules->budget;
    rules_free(sh->rules);
    sh->rules = r;
    r->pools = t->pools.n ? copy(t->pools) : NULL;
    r->until_ms = t->until_ms;
    for (uint32_t i = 0; i < t->model_limits; i++) {
        struct model_cap *cap = &r->cap[r->caps++];
        cap->names = copy(t->model_limit[i].models);
        cap->models = cluster_intern_models(&c->cluster, t->model_limit[i].models);
        cap->limit_milli = t->model_limit[i].gpu_milli;
    }
    set_budget(c, share, t, now_ms);
}

static int refuse(const struct event_tenant *t, const char *why, struct err *e)
{
    return err_set(e, ERR_INVALID, "tenant '%.*s': %s", STR_ARG(t->name), why);
}

static int check_models(const struct core *c, const struct event_tenant *t, struct err *e)
{
    uint32_t more = 0;
    if (t->model_limits > MODEL_LIMITS_MAX)
        return err_set(e, ERR_INVALID, "tenant '%.*s': model_limit: more than %d", STR_ARG(t->name),
                       MODEL_LIMITS_MAX);
    for (uint32_t i = 0; i < t->model_limits; i++) {
        struct str list = t->model_limit[i].models, one;
        if (list.n == 0 || list.n > TENANT_TEXT_MAX)
            return refuse(t, "model_limit: GPU models are needed, 'A|B'", e);
        if (t->model_limit[i].gpu_milli > INT64_MAX)
            return refuse(t, "model_limit: the number of GPUs is too large", e);
        while (list.n) {
            str_cut(list, '|', &one, &list);
            one = str_trim(one);
            if (one.n == 0 || one.n > NAME_MAX_BYTES)
                return refuse(t, "model_limit: the name of a GPU model is empty or too long", e);
            more += names_find(&c->cluster.models, one) == NAME_NONE;
        }
    }
    if (more > MODELS_MAX - MIN(c->cluster.models.n, (size_t)MODELS_MAX))
        return err_set(e, ERR_TOO_LARGE, "tenant '%.*s': more than %d GPU models in one cluster",
                       STR_ARG(t->name), MODELS_MAX);
    return 0;
}

static int check_pools(const struct core *c, const struct event_tenant *t, struct err *e)
{
    struct str list = t->pools, one;
    uint32_t n = 0, zoned = 1;
    if (list.n > TENANT_TEXT_MAX)
        return refuse(t, "pools: the list is too long", e);
    while (list.n) {
        str_cut(list, '|', &one, &list);
        one = str_trim(one);
        if (one.n == 0 || one.n > NAME_MAX_BYTES)
            return refuse(t, "pools: the name of a pool is empty or too long", e);
        if (++n > TENANT_POOLS_MAX)
            return err_set(e, ERR_INVALID, "tenant '%.*s': pools: more than %d", STR_ARG(t->name),
                           TENANT_POOLS_MAX);
    }
    for (uint32_t i = 0; i < c->shares.n && n; i++)
        zoned += c->shares.at[i].zone != 0 && !c->shares.at[i].is_user;
    if (n && zoned > zones_left(c).zones)
        return err_set(e, ERR_TOO_LARGE, "tenant '%.*s': pools: too many different sets of pools",
                       STR_ARG(t->name));
    return 0;
}

static bool is_time(int64_t ms)
{
    return ms >= -TIME_MAX_MS && ms <= TIME_MAX_MS;
}

int rules_check(const struct core *c, const struct event_tenant *t, struct err *e)
{
    if (check_models(c, t, e) < 0 || check_pools(c, t, e) < 0)
        return -1;
    if (!is_time(t->until_ms))
        return refuse(t, "until_ms: not a time", e);
    if (t->budget_gpu_milli_ms < 0 || t->budget_gpu_milli_ms > BUDGET_MAX)
        return refuse(t, "budget_gpu_milli_ms: out of bounds", e);
    if (t->budget_gpu_milli_ms && (t->budget_until_ms <= t->budget_from_ms ||
                                   !is_time(t->budget_from_ms) || !is_time(t->budget_until_ms)))
        return refuse(t, "budget_until_ms: the period must end after it begins", e);
    return 0;
}

/* ---- what is held ---- */

uint64_t held_on_models(const struct core *c, const struct held *h, uint64_t models)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < h->n; i++) {
        const struct kind *k = &c->cluster.kind[c->cluster.node[h->slot[i].node].kind];
        if (h->slot[i].gpu_mask && models >> k->model & 1)
            sum += (uint64_t)__builtin_popcount(h->slot[i].gpu_mask) * h->slot[i].milli;
    }
    return sum;
}

static void count(const struct core *c, struct rules *r, const struct held *h, bool more)
{
    r->held_milli = more ? r->held_milli + h->gpu_milli : r->held_milli - h->gpu_milli;
    for (uint32_t i = 0; i < r->caps; i++) {
        uint64_t on = held_on_models(c, h, r->cap[i].models), *used = &r->cap[i].used_milli;
        *used = more ? *used + on : *used - on;
    }
}

static void forget(struct rules *r)
{
    r->held_milli = 0;
    for (uint32_t i = 0; i < r->caps; i++)
        r->cap[i].used_milli = 0;
}

void rules_charge(struct core *c, uint32_t leaf, const struct held *h, bool more, int64_t now_ms)
{
    for (uint32_t i = leaf; c->shares.ruled && i != NONE; i = c->shares.at[i].parent) {
        struct rules *r = c->shares.at[i].rules;
        if (!r)
            continue;
        settle(r, now_ms);
        count(c, r, h, more);
    }
}

void rules_settle(struct core *c, int64_t now_ms)
{
    for (uint32_t i = 0; i < c->shares.n && c->shares.ruled; i++)
        if (c->shares.at[i].rules)
            settle(c->shares.at[i].rules, now_ms);
}

void rules_recount(struct core *c)
{
    struct share *s = c->shares.at;
    for (uint32_t i = 0; i < c->shares.n && c->shares.ruled; i++)
        if (s[i].rules)
            forget(s[i].rules);
    for (uint32_t k = 0; k < c->queue.holders && c->shares.ruled; k++) {
        const struct job *j = &c->queue.job[c->queue.holder[k]];
        for (uint32_t i = j->leaf; i != NONE; i = s[i].parent)
            if (s[i].rules)
                count(c, s[i].rules, j->held, true);
    }
}

int rules_audit(const struct core *c, struct err *e)
{
    uint32_t ruled = 0;
    for (uint32_t i = 0; i < c->shares.n; i++) {
        const struct share *s = &c->shares.at[i];
        ruled += !!s->rules;
        if (!s->rules)
            continue;
        struct rules sum = *s->rules;
        forget(&sum);
        for (uint32_t k = 0; k < c->queue.jobs; k++)
            if (c->queue.job[k].held && share_is_below(&c->shares, c->queue.job[k].leaf, i))
                count(c, &sum, c->queue.job[k].held, true);
        bool right = sum.held_milli == s->rules->held_milli;
        for (uint32_t k = 0; k < sum.caps; k++)
            right = right && sum.cap[k].used_milli == s->rules->cap[k].used_milli;
        if (!right)
            return err_set(e, ERR_INTERNAL, "share '%s': its GPUs by model are not those it holds",
                           s->name);
    }
    if (ruled != c->shares.ruled)
        return err_set(e, ERR_INTERNAL, "%u tenants have rules, not %u", ruled, c->shares.ruled);
    return 0;
}

/* ---- the clock ---- */

bool rules_are_over(const struct rules *r, int64_t wall_ms)
{
    return r->until_ms && wall_ms >= r->until_ms;
}

bool rules_are_spent(const struct rules *r, int64_t now_ms, int64_t wall_ms)
{
    const struct budget *b = &r->budget;
    bool in_period = b->most && wall_ms >= b->from_ms && wall_ms < b->until_ms;
    return in_period && rules_spent(r, now_ms) >= b->most;
}

static enum reason closed_by(const struct rules *r, int64_t now_ms, int64_t wall_ms)
{
    if (rules_are_over(r, wall_ms))
        return WHY_EXPIRED;
    return rules_are_spent(r, now_ms, wall_ms) ? WHY_BUDGET : WHY_NEW;
}

/* How long they wait says nothing any more about waiting for room. */
static void unstate(struct core *c, uint32_t share)
{
    for (uint32_t i = 0; i < c->queue.jobs; i++)
        if (c->queue.job[i].group != NONE &&
            share_is_below(&c->shares, c->queue.job[i].leaf, share))
            c->queue.job[i].is_stated = false;
}

static bool has_machines(const struct cluster *c, const struct request *r)
{
    uint32_t k = 0;
    while (k < c->kinds && (!c->kind[k].nodes || !kind_in_zone(&c->kind[k], r)))
        k++;
    return k < c->kinds;
}

void rules_review(struct core *c, int64_t wall_ms)
{
    for (uint32_t i = 0; i < c->shares.n && (c->shares.ruled || c->shares.closed); i++) {
        struct share *s = &c->shares.at[i];
        uint8_t was = s->closed;
        s->closed = s->rules ? (uint8_t)closed_by(s->rules, c->now_ms, wall_ms) : 0;
        s->nowhere = s->rules && !has_machines(&c->cluster, &(struct request){ .zone = s->zone });
        c->shares.closed += !!s->closed;
        c->shares.closed -= !!was;
        if (s->closed && !was)
            unstate(c, i);
        if (was && was != s->closed)
            queue_wake_share(&c->queue, &c->shapes, &c->shares, i);
    }
}

/* When it runs out if all goes on as it is; INT64_MAX: not in this period, or it has. */
static int64_t runs_out_ms(const struct rules *r, int64_t now_ms)
{
    const struct budget *b = &r->budget;
    int64_t left = b->most - rules_spent(r, now_ms), held = (int64_t)r->held_milli;
    if (left <= 0 || held == 0)
        return INT64_MAX;
    int64_t ms = left / held + (left % held != 0), from_ms = MAX(now_ms, b->from_ms);
    return ms < b->until_ms - from_ms ? from_ms + ms : INT64_MAX;
}

int64_t rules_wake_ms(const struct core *c)
{
    int64_t wake_ms = INT64_MAX;
    for (uint32_t i = 0; i < c->shares.n && c->shares.ruled; i++) {
        const struct rules *r = c->shares.at[i].rules;
        if (!r)
            continue;
        if (r->until_ms && r->until_ms > c->wall_ms)
            wake_ms = MIN(wake_ms, r->until_ms);
        if (!r->budget.most || r->budget.until_ms <= c->wall_ms)
            continue;
        wake_ms = MIN(wake_ms, runs_out_ms(r, c->now_ms));
        wake_ms = MIN(wake_ms, r->budget.until_ms);
        if (!c->shares.at[i].closed && closed_by(r, c->now_ms, c->wall_ms))
            wake_ms = MIN(wake_ms, c->now_ms); /* it has run out since the last pass */
    }
    return wake_ms;
}
