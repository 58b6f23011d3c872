/* The ledger on generated worlds, against a count of the machines' GPUs one by one. */
#include <stdio.h>

#include "core/state.h"
#include "tests/lib/test.h"
#include "tests/lib/world.h"

#define SEEDS 250
#define STEPS 250

/* What the rows of all days come to, and whether one of them is wrong. */
struct seen {
    struct ledger_machines all;
    struct ledger_sums sum;
    struct ledger_row day;     /* the machines of the day that is being read */
    struct ledger_sums of_day; /* and what its tenants come to */
    bool tenants, wrong;
};

static void end_day(struct seen *s)
{
    const struct ledger_machines *m = &s->day.machines;
    bool right = m->total == m->got + m->idle + m->away && m->idle >= 0 && m->away >= 0 &&
                 s->of_day.got == m->got && s->of_day.lent == s->of_day.borrowed &&
                 (!s->tenants || s->of_day.entitled == m->got + m->idle);
    s->wrong = s->wrong || !right;
    s->all.total += m->total;
    s->all.got += m->got;
    s->all.idle += m->idle;
    s->all.away += m->away;
    s->sum.lent += s->of_day.lent;
    s->sum.frozen += s->of_day.frozen;
    s->sum.wanted += s->of_day.wanted;
    s->of_day = (struct ledger_sums){ 0 };
}

static void add_row(void *ctx, const struct ledger_row *r)
{
    struct seen *s = ctx;
    if (r->tenant.n == 0) {
        end_day(s);
        s->wrong = s->wrong || r->day >= s->day.day;
        s->day = *r;
        return;
    }
    s->of_day.entitled += r->sums.entitled;
    s->of_day.got += r->sums.got;
    s->of_day.lent += r->sums.lent;
    s->of_day.borrowed += r->sums.borrowed;
    s->of_day.frozen += r->sums.frozen;
    s->of_day.wanted += r->sums.wanted;
    s->wrong = s->wrong || r->day != s->day.day || r->sums.lent > r->sums.entitled ||
               r->sums.borrowed > r->sums.got || r->sums.frozen > r->sums.wanted;
}

static struct seen look(const struct core *c, int64_t now_ms)
{
    struct seen s = { .day.day = INT64_MAX, .tenants = c->shares.n > 1 };
    core_ledger(c, (struct ledger_span){ INT64_MIN, now_ms }, add_row, &s);
    end_day(&s);
    return s;
}

/* ---- the same, counted machine by machine and job by job ---- */

struct counted {
    struct ledger_machines all;
    int64_t frozen, wanted;
};

static struct counted count_now(const struct core *c)
{
    struct counted n = { 0 };
    struct node_view v;
    for (uint32_t i = 0; core_node(c, (node_id){ i }, &v); i++) {
        int64_t total = (int64_t)v.gpus * GPU_MILLI, idle = 0;
        for (uint32_t g = 0; g < v.gpus; g++)
            idle += v.gpu_free[g];
        bool here = v.state == NODE_UP && v.open;
        n.all.total += total;
        n.all.got += total - idle;
        n.all.idle += here ? idle : 0;
        n.all.away += here ? 0 : idle;
    }
    for (uint32_t i = 0; i < c->queue.jobs; i++) {
        const struct job *j = &c->queue.job[i];
        if (queue_find(&c->queue, j->id) != i)
            continue;
        bool frozen = j->state == JOB_FROZEN && j->awake;
        n.frozen += frozen && j->taken ? j->asks_milli : 0;
        n.wanted += frozen || (j->state == JOB_QUEUED && !j->later) ? j->asks_milli : 0;
    }
    return n;
}

static void add_counted(struct counted *sum, const struct counted *rate, int64_t ms)
{
    sum->all.total += rate->all.total * ms;
    sum->all.got += rate->all.got * ms;
    sum->all.idle += rate->all.idle * ms;
    sum->all.away += rate->all.away * ms;
    sum->frozen += rate->frozen * ms;
    sum->wanted += rate->wanted * ms;
}

static bool same(const struct seen *s, const struct counted *n)
{
    return !s->wrong && s->all.total == n->all.total && s->all.got == n->all.got &&
           s->all.idle == n->all.idle && s->all.away == n->all.away && s->sum.frozen == n->frozen &&
           s->sum.wanted == n->wanted;
}

struct lived {
    struct core *c;
    struct counted sum, rate;
    int64_t at_ms;
};

/* Something happened, or not: what went on until now was as it was before. */
static void happened(struct lived *l, int64_t now_ms, bool changed)
{
    if (!changed)
        return;
    if (l->at_ms != INT64_MIN && now_ms > l->at_ms)
        add_counted(&l->sum, &l->rate, now_ms - l->at_ms);
    l->at_ms = MAX(l->at_ms, now_ms);
    l->rate = count_now(l->c);
}

static void build(struct world *w, struct lived *l)
{
    struct event ev[64];
    struct err e;
    size_t n = world_build(w, ev, ARRAY_LEN(ev));
    for (size_t i = 0; i < n; i++) {
        CHECK(core_apply(l->c, &ev[i], &e) == 0);
        happened(l, ev[i].t_ms, true);
    }
}

static void step(struct world *w, struct lived *l, struct arena *a)
{
    struct plan p;
    struct err e;
    struct event ev = world_event(w);
    bool taken = core_apply(l->c, &ev, &e) == 0;
    happened(l, ev.t_ms, taken);
    if (taken)
        world_accepted(w, &ev);
    core_pass(l->c, w->now_ms, a, &p);
    happened(l, w->now_ms, true);
    arena_reset(a);
}

static void every_gpu_is_somebodys_idle_or_away_at_every_time(void)
{
    int64_t lent = 0, frozen = 0, away = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        AUTO(core_free_p) struct core *c = core_new();
        AUTO(arena_free) struct arena a = { 0 };
        AUTO(world_free) struct world w;
        struct lived l = { .c = c, .at_ms = INT64_MIN };
        world_init(&w, seed);
        build(&w, &l);
        for (int i = 0; i < STEPS; i++) {
            step(&w, &l, &a);
            struct seen s = look(c, l.at_ms);
            CHECK_AT(seed, same(&s, &l.sum));
            struct counted later = l.sum;
            add_counted(&later, &l.rate, 5 * INT64_C(86400000) + 17);
            s = look(c, l.at_ms + 5 * INT64_C(86400000) + 17);
            CHECK_AT(seed, same(&s, &later));
        }
        struct seen s = look(c, l.at_ms);
        lent += s.sum.lent;
        frozen += s.sum.frozen;
        away += s.all.away;
    }
    CHECK(lent > 0 && frozen > 0 && away > 0); /* the worlds had all of it */
}

/* ---- a refused event, and a journal that is cut ---- */

static void what_was_refused_leaves_no_trace(void)
{
    for (uint64_t seed = 1; seed <= 50; seed++) {
        AUTO(core_free_p) struct core *c = core_new();
        AUTO(arena_free) struct arena a = { 0 };
        AUTO(world_free) struct world w;
        struct lived l = { .c = c, .at_ms = INT64_MIN };
        struct err e;
        world_init(&w, seed);
        build(&w, &l);
        for (int i = 0; i < 40; i++) {
            struct event bad = { .t_ms = w.now_ms + 1000000, .kind = EVENT_JOB };
            bad.job.id.v = UINT64_MAX; /* in the future, and unknown */
            CHECK_AT(seed, core_apply(c, &bad, &e) < 0);
            step(&w, &l, &a);
            struct seen s = look(c, l.at_ms);
            CHECK_AT(seed, same(&s, &l.sum));
        }
    }
}

struct cut {
    struct core *to;
    bool failed;
};

static void tell(void *ctx, const struct event *ev)
{
    struct cut *cut = ctx;
    struct err e;
    cut->failed = cut->failed || core_apply(cut->to, ev, &e) < 0;
}

/* A snapshot may number tenants otherwise: so one tenant at a time. */
struct rows_of {
    struct str tenant;
    struct buf *out;
};

static void write_row(void *ctx, const struct ledger_row *r)
{
    const struct rows_of *of = ctx;
    const struct ledger_sums *s = &r->sums;
    const struct ledger_machines *m = &r->machines;
    if (!str_eq(of->tenant, r->tenant))
        return;
    buf_printf(of->out, "%lld %.*s: %lld %lld %lld %lld %lld %lld, %lld %lld %lld %lld\n",
               (long long)r->day, STR_ARG(r->tenant), (long long)s->entitled, (long long)s->got,
               (long long)s->lent, (long long)s->borrowed, (long long)s->frozen,
               (long long)s->wanted, (long long)m->total, (long long)m->got, (long long)m->idle,
               (long long)m->away);
}

static void write_rows(const struct core *c, const struct core *names, int64_t now_ms,
                       struct buf *out)
{
    struct share_view v;
    for (uint32_t i = 0; core_share(names, (share_id){ i }, now_ms, &v); i++) {
        struct rows_of of = { str_of(v.name), out }; /* the root's name is empty: the machines */
        if (!v.is_user)
            core_ledger(c, (struct ledger_span){ INT64_MIN, now_ms }, write_row, &of);
    }
}

static void a_snapshot_has_what_was_counted(void)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        AUTO(core_free_p) struct core *c = core_new();
        AUTO(core_free_p) struct core *again = core_new();
        AUTO(arena_free) struct arena a = { 0 };
        AUTO(world_free) struct world w;
        AUTO(buf_free) struct buf x = BUF(1 << 22), y = BUF(1 << 22);
        struct lived l = { .c = c, .at_ms = INT64_MIN };
        struct cut cut = { .to = again };
        world_init(&w, seed);
        build(&w, &l);
        for (int i = 0; i < 100; i++)
            step(&w, &l, &a);
        core_snapshot(c, tell, &cut);
        CHECK_AT(seed, !cut.failed);
        write_rows(c, c, l.at_ms, &x);
        write_rows(again, c, l.at_ms, &y);
        CHECK_AT(seed, x.n > 0 && str_eq(buf_str(&x), buf_str(&y)));
    }
}

static const struct test tests[] = {
    { "every GPU is somebody's, idle or away at every time",
      every_gpu_is_somebodys_idle_or_away_at_every_time },
    { "what was refused leaves no trace", what_was_refused_leaves_no_trace },
    { "a snapshot has what was counted", a_snapshot_has_what_was_counted },
};
TEST_CASES(tests)
