#include "core/ledger.h"

#include "base/date.h"
#include "core/state.h"

/* 17 million GPUs: what is guaranteed or wanted beyond it is counted as this, so that a day's sum, and
 * twice that, has room. */
#define MOST_MILLI (INT64_C(1) << 34)
#define SUM_MAX (MOST_MILLI * DAY_MS)

__extension__ typedef unsigned __int128 u128;

/* How what a tenant has is divided among its users and the tenants below it. */
struct part {
    int64_t whole, given;
    int64_t guarantees, guarantees_seen;
    uint64_t weights, weights_seen;
};

struct ledger_tenant {
    uint32_t share;
    uint64_t users_weight;
    int64_t got_milli, frozen_milli, wanted_milli; /* now; of its own users */
    int64_t entitled_milli;
    struct part part;
    struct ledger_sums rate; /* a ms */
};

struct ledger_day {
    int64_t day;
    struct ledger_machines machines;
    struct ledger_sums *tenant;
    uint32_t tenants;
};

/* What entitlements follow from, besides the tree. */
struct basis {
    int64_t capacity_milli;
    uint64_t gpus, worth_milli; /* of the machines that are offered */
};

struct ledger {
    struct ledger_tenant *tenant; /* 0: the root, which has no users */
    uint32_t tenants, tenant_cap;
    uint32_t *of; /* by share: a tenant's place in `tenant`; of a user, its tenant's */
    uint32_t shares, share_cap;
    struct basis basis;
    bool tree_changed;
    struct ledger_machines rate;
    struct ledger_day *day; /* the oldest first */
    uint32_t days, day_cap;
    int64_t at_ms; /* counted until then */
};

struct ledger *ledger_new(void)
{
    struct ledger *l = xcalloc(1, sizeof *l);
    l->at_ms = INT64_MIN;
    return l;
}

static void drop_days(struct ledger *l, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        free(l->day[i].tenant);
    if (n == 0)
        return;
    l->days -= n;
    memmove(l->day, l->day + n, l->days * sizeof *l->day);
}

struct ledger *ledger_free(struct ledger *l)
{
    drop_days(l, l->days);
    free(l->day);
    free(l->tenant);
    free(l->of);
    free(l);
    return NULL;
}

/* ---- the tree ---- */

void ledger_shares(struct core *c)
{
    struct ledger *l = c->ledger;
    l->tree_changed = true;
    for (; l->shares < c->shares.n; l->shares++) {
        const struct share *s = &c->shares.at[l->shares];
        uint32_t up = s->parent == NONE ? 0 : l->of[s->parent];
        vec_grow(l->of, l->shares, l->share_cap);
        l->of[l->shares] = s->is_user ? up : l->tenants;
        if (s->is_user) {
            l->tenant[up].users_weight += s->weight_milli;
            continue;
        }
        vec_grow(l->tenant, l->tenants, l->tenant_cap);
        l->tenant[l->tenants++] = (struct ledger_tenant){ .share = l->shares };
    }
}

void ledger_weigh(struct core *c, uint32_t leaf, uint32_t was_milli)
{
    struct ledger *l = c->ledger;
    uint32_t is_milli = c->shares.at[leaf].weight_milli;
    if (leaf < l->shares) /* else it is met with this weight */
        l->tenant[l->of[leaf]].users_weight += (uint64_t)is_milli - was_milli;
    ledger_shares(c);
}

/* A user may have come with this very event; its tenant was there before. */
static struct ledger_tenant *tenant_of(struct core *c, const struct job *j)
{
    return &c->ledger->tenant[c->ledger->of[c->shares.at[j->leaf].parent]];
}

/* ---- what goes on now ---- */

void ledger_hold(struct core *c, const struct job *j, int64_t gpu_milli)
{
    tenant_of(c, j)->got_milli += gpu_milli;
}

void ledger_note(struct core *c, struct job *j)
{
    struct ledger_tenant *t = tenant_of(c, j);
    bool awake = j->state == JOB_FROZEN && j->awake, out = awake && j->taken;
    bool wanted = awake || (j->state == JOB_QUEUED && !j->later);
    t->wanted_milli += ((int64_t)wanted - j->is_wanted) * j->asks_milli;
    t->frozen_milli += ((int64_t)out - j->is_out) * j->asks_milli;
    j->is_wanted = wanted;
    j->is_out = out;
}

static int64_t part_of(int64_t whole, uint64_t n, uint64_t of)
{
    return (int64_t)((u128)(uint64_t)whole * n / of);
}

/* What the next one of a row gets of `whole`, so that together they get all of it. */
static int64_t next_part(int64_t whole, uint64_t seen, uint64_t its, uint64_t of)
{
    return of ? part_of(whole, seen + its, of) - part_of(whole, seen, of) : 0;
}

static struct basis basis_now(const struct core *c, int64_t got_milli)
{
    const struct cluster *cl = &c->cluster;
    struct basis d = { .capacity_milli = got_milli + (int64_t)cl->free.of[RES_GPU],
                       .gpus = cl->total.of[RES_GPU] / GPU_MILLI };
    for (uint32_t m = 0; m < cl->models.n; m++)
        d.worth_milli += (uint64_t)cl->model_gpus[m] * cl->model_cost_milli[m];
    return d;
}

/* In GPUs as they are on average. */
static int64_t guarantee_milli(const struct share *s, const struct basis *d)
{
    u128 milli = s->removed ? 0 : (u128)MIN(s->guarantee_milli, MOST_MILLI);
    if (d->gpus && d->worth_milli)
        milli = milli * d->gpus * GPU_MILLI / d->worth_milli;
    return milli > MOST_MILLI ? MOST_MILLI : (int64_t)milli;
}

/* One that is no more has no part of anything. */
static uint64_t weight_of(const struct share *s)
{
    return s->removed ? 0 : s->weight_milli;
}

/* Tenants move in the tree. */
static struct part *part_above(const struct core *c, const struct ledger_tenant *t)
{
    struct ledger *l = c->ledger;
    return &l->tenant[l->of[c->shares.at[t->share].parent]].part;
}

static void give_part(const struct core *c, struct ledger_tenant *t)
{
    const struct share *s = &c->shares.at[t->share];
    struct part *up = part_above(c, t);
    int64_t guarantee = guarantee_milli(s, &c->ledger->basis);
    int64_t first = MIN(up->guarantees, up->whole);
    t->part.whole = next_part(first, (uint64_t)up->guarantees_seen, (uint64_t)guarantee,
                              (uint64_t)up->guarantees) +
                    next_part(up->whole - first, up->weights_seen, weight_of(s), up->weights);
    up->guarantees_seen += guarantee;
    up->weights_seen += weight_of(s);
    up->given += t->part.whole;
}

static void entitle(const struct core *c, const struct basis *d)
{
    struct ledger *l = c->ledger;
    l->basis = *d;
    l->tree_changed = false;
    for (uint32_t i = 0; i < l->tenants; i++)
        l->tenant[i].part = (struct part){ .weights = l->tenant[i].users_weight };
    for (uint32_t i = 1; i < l->tenants; i++) {
        const struct share *s = &c->shares.at[l->tenant[i].share];
        struct part *up = part_above(c, &l->tenant[i]);
        up->guarantees += guarantee_milli(s, d);
        up->weights += weight_of(s);
    }
    l->tenant[0].part.whole = d->capacity_milli;
    for (uint32_t depth = 1; depth <= TREE_DEPTH_MAX; depth++) /* parents first */
        for (uint32_t i = 1; i < l->tenants; i++)
            if (c->shares.at[l->tenant[i].share].depth == depth)
                give_part(c, &l->tenant[i]);
    for (uint32_t i = 1; i < l->tenants; i++)
        l->tenant[i].entitled_milli = l->tenant[i].part.whole - l->tenant[i].part.given;
}

/* Who lends to those that borrow: all that have some left, in proportion. */
static void lend(struct ledger *l)
{
    int64_t borrowed = 0, left = 0, seen = 0;
    for (uint32_t i = 1; i < l->tenants; i++) {
        int64_t above = l->tenant[i].got_milli - l->tenant[i].entitled_milli;
        borrowed += MAX(above, INT64_C(0));
        left += MAX(-above, INT64_C(0));
    }
    for (uint32_t i = 1; i < l->tenants; i++) {
        const struct ledger_tenant *t = &l->tenant[i];
        int64_t above = t->got_milli - t->entitled_milli, its = MAX(-above, INT64_C(0));
        l->tenant[i].rate = (struct ledger_sums){
            .entitled = t->entitled_milli,
            .got = t->got_milli,
            .lent = next_part(borrowed, (uint64_t)seen, (uint64_t)its, (uint64_t)left),
            .borrowed = MAX(above, INT64_C(0)),
            .frozen = MIN(t->frozen_milli, MOST_MILLI),
            .wanted = MIN(t->wanted_milli, MOST_MILLI),
        };
        seen += its;
    }
}

static void set_rates(const struct core *c)
{
    struct ledger *l = c->ledger;
    int64_t got_milli = 0, total_milli = (int64_t)c->cluster.gpus * GPU_MILLI;
    for (uint32_t i = 0; i < l->tenants; i++)
        got_milli += l->tenant[i].got_milli;
    struct basis d = basis_now(c, got_milli);
    if (l->tree_changed || d.capacity_milli != l->basis.capacity_milli || d.gpus != l->basis.gpus ||
        d.worth_milli != l->basis.worth_milli)
        entitle(c, &d);
    l->rate = (struct ledger_machines){ .total = total_milli,
                                        .got = got_milli,
                                        .idle = d.capacity_milli - got_milli,
                                        .away = total_milli - d.capacity_milli };
    lend(l);
}

/* ---- sums ---- */

static void add_sums(struct ledger_sums *to, const struct ledger_sums *rate, int64_t ms)
{
    to->entitled += rate->entitled * ms;
    to->got += rate->got * ms;
    to->lent += rate->lent * ms;
    to->borrowed += rate->borrowed * ms;
    to->frozen += rate->frozen * ms;
    to->wanted += rate->wanted * ms;
}

static void add_machines(struct ledger_machines *to, const struct ledger_machines *rate, int64_t ms)
{
    to->total += rate->total * ms;
    to->got += rate->got * ms;
    to->idle += rate->idle * ms;
    to->away += rate->away * ms;
}

static struct ledger_day *day_at(struct ledger *l, int64_t day)
{
    uint32_t at = l->days;
    while (at > 0 && l->day[at - 1].day > day)
        at--;
    if (at > 0 && l->day[at - 1].day == day)
        return &l->day[at - 1];
    vec_grow(l->day, l->days, l->day_cap);
    memmove(l->day + at + 1, l->day + at, (l->days - at) * sizeof *l->day);
    l->day[at] = (struct ledger_day){ .day = day };
    l->days++;
    if (l->days > LEDGER_DAYS_MAX && at > 0) {
        drop_days(l, 1);
        at--;
    }
    return &l->day[at];
}

static struct ledger_sums *tenant_at(struct ledger_day *d, const struct ledger *l, uint32_t tenant)
{
    if (tenant >= d->tenants) {
        d->tenant = xrealloc(d->tenant, l->tenants, sizeof *d->tenant);
        memset(d->tenant + d->tenants, 0, (l->tenants - d->tenants) * sizeof *d->tenant);
        d->tenants = l->tenants;
    }
    return &d->tenant[tenant];
}

void ledger_look(const struct core *c, int64_t now_ms)
{
    if (c->ledger->at_ms != INT64_MIN && now_ms > c->ledger->at_ms)
        set_rates(c);
}

static int64_t first_counted_ms(const struct ledger *l, int64_t now_ms)
{
    return MAX(l->at_ms, (floor_div(now_ms, DAY_MS) - LEDGER_DAYS_MAX + 1) * DAY_MS);
}

void ledger_count(struct core *c, int64_t now_ms)
{
    struct ledger *l = c->ledger;
    int64_t from_ms = l->at_ms == INT64_MIN ? now_ms : first_counted_ms(l, now_ms);
    while (from_ms < now_ms) {
        struct ledger_day *d = day_at(l, floor_div(from_ms, DAY_MS));
        int64_t ms = MIN(now_ms, (d->day + 1) * DAY_MS) - from_ms;
        add_machines(&d->machines, &l->rate, ms);
        for (uint32_t i = l->tenants; i-- > 1;) /* the last first: its row makes room for all */
            add_sums(tenant_at(d, l, i), &l->tenant[i].rate, ms);
        from_ms += ms;
    }
    l->at_ms = MAX(l->at_ms, now_ms);
    if (l->shares < c->shares.n)
        ledger_shares(c);
}

static bool is_row_of_day(const struct ledger_row *r)
{
    const int64_t v[] = { r->sums.entitled, r->sums.got,     r->sums.lent,      r->sums.borrowed,
                          r->sums.frozen,   r->sums.wanted,  r->machines.total, r->machines.got,
                          r->machines.idle, r->machines.away };
    bool good = r->day >= -TIME_MAX_MS / DAY_MS - 1 && r->day <= TIME_MAX_MS / DAY_MS;
    for (size_t i = 0; i < ARRAY_LEN(v); i++)
        good = good && v[i] >= 0 && v[i] <= SUM_MAX;
    return good;
}

int ledger_apply(struct core *c, const struct ledger_row *row, int64_t now_ms, struct err *e)
{
    struct ledger *l = c->ledger;
    uint32_t tenant = row->tenant.n ? shares_tenant(&c->shares, row->tenant) : SHARE_ROOT;
    uint32_t n = 0;
    if (tenant == NONE)
        return err_set(e, ERR_NOT_FOUND, "ledger: there is no tenant '%.*s'", STR_ARG(row->tenant));
    if (!is_row_of_day(row))
        return err_set(e, ERR_INVALID,
                       "ledger: day %lld: there is no such day, or a sum is below 0",
                       (long long)row->day);
    ledger_count(c, now_ms);
    while (n < l->days && l->day[n].day <= row->day)
        n++;
    if (tenant == SHARE_ROOT)
        drop_days(l, n);
    struct ledger_day *d = day_at(l, row->day);
    if (tenant == SHARE_ROOT)
        d->machines = row->machines;
    else
        *tenant_at(d, l, l->of[tenant]) = row->sums;
    return 0;
}

/* ---- the view ---- */

static bool sums_any(const struct ledger_sums *s)
{
    return s->entitled || s->got || s->lent || s->borrowed || s->frozen || s->wanted;
}

struct showing {
    const struct core *c;
    core_ledger_fn *fn;
    void *ctx;
};

/* d NULL: nothing was counted of it yet; what goes on now has so many ms of it. */
static void show_day(const struct showing *s, int64_t day, const struct ledger_day *d, int64_t ms)
{
    const struct core *c = s->c;
    const struct ledger *l = c->ledger;
    struct ledger_row all = { .day = day };
    if (d)
        all.machines = d->machines;
    add_machines(&all.machines, &l->rate, ms);
    s->fn(s->ctx, &all);
    for (uint32_t i = 1; i < l->tenants; i++) {
        struct ledger_row row = { .day = day,
                                  .tenant = str_of(c->shares.at[l->tenant[i].share].name) };
        if (d && i < d->tenants)
            row.sums = d->tenant[i];
        add_sums(&row.sums, &l->tenant[i].rate, ms);
        if (sums_any(&row.sums))
            s->fn(s->ctx, &row);
    }
}

void core_ledger(const struct core *c, struct ledger_span span, core_ledger_fn *fn, void *ctx)
{
    const struct ledger *l = c->ledger;
    struct showing to = { c, fn, ctx };
    if (l->at_ms == INT64_MIN)
        return;
    int64_t now_ms = MAX(span.now_ms, l->at_ms), from_ms = first_counted_ms(l, now_ms);
    int64_t first = floor_div(from_ms, DAY_MS), last = floor_div(now_ms, DAY_MS);
    uint32_t n = l->days;
    set_rates(c);
    for (; n > 0 && l->day[n - 1].day > last; n--) /* a journal may say anything */
        show_day(&to, l->day[n - 1].day, &l->day[n - 1], 0);
    for (int64_t day = last; day >= MAX(first, span.from_day); day--) {
        const struct ledger_day *d = n && l->day[n - 1].day == day ? &l->day[--n] : NULL;
        int64_t ms = MIN(now_ms, (day + 1) * DAY_MS) - MAX(from_ms, day * DAY_MS);
        show_day(&to, day, d, ms);
    }
    for (; n > 0 && l->day[n - 1].day >= span.from_day; n--)
        show_day(&to, l->day[n - 1].day, &l->day[n - 1], 0);
}

void core_ledger_forget(struct core *c, int64_t before_day)
{
    struct ledger *l = c->ledger;
    uint32_t n = 0;
    while (n < l->days && l->day[n].day < before_day)
        n++;
    drop_days(l, n);
}
