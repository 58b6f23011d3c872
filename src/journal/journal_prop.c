/* Replaying the journal of a generated world: the same decisions, the same state. */
#include "core/core.h"
#include "journal/journal.h"
#include "tests/lib/test.h"
#include "tests/lib/world.h"

#define SEEDS 100
#define STEPS 250

static void build(struct world *w, struct core *c, struct buf *journal)
{
    struct event ev[64];
    struct err e;
    size_t n = world_build(w, ev, ARRAY_LEN(ev));
    for (size_t i = 0; i < n; i++) {
        CHECK(core_apply(c, &ev[i], &e) == 0);
        journal_write(&ev[i], journal);
    }
}

/* Writes what happened and what was decided. */
static void record(struct world *w, struct core *c, struct buf *journal)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct err e;
    struct plan p;
    build(w, c, journal);
    for (int step = 0; step < STEPS; step++) {
        struct event ev = world_event(w);
        if (core_apply(c, &ev, &e) == 0) {
            world_accepted(w, &ev);
            journal_write(&ev, journal);
        }
        while (step % 3 && world_never(w, c, &ev)) { /* else they stay, and a snapshot has them */
            CHECK(core_apply(c, &ev, &e) == 0);
            journal_write(&ev, journal);
        }
        core_pass(c, w->now_ms, &a, &p);
        journal_write(&(struct event){ .t_ms = w->now_ms, .kind = EVENT_PASS }, journal);
        for (size_t i = 0; i < p.n; i++) {
            struct event decision = action_event(&p.action[i], w->now_ms);
            journal_write(&decision, journal);
        }
        arena_reset(&a);
    }
}

/* Is this the line that the decision gives? */
static bool is_decided(const struct action *a, int64_t t_ms, struct str line)
{
    AUTO(buf_free) struct buf again = BUF(1 << 20);
    struct event ev = action_event(a, t_ms);
    journal_write(&ev, &again);
    return str_eq(str_trim(buf_str(&again)), str_trim(line));
}

/* verify: makes each pass again and compares; else the recorded decisions are applied. */
static bool replay(struct str text, bool verify, struct core *c)
{
    AUTO(arena_free) struct arena a = { 0 };
    AUTO(arena_free) struct arena pass_arena = { 0 };
    struct plan p = { 0 };
    size_t at = 0;
    struct str line;
    struct err e;
    while (str_next_line(&text, &line)) {
        struct event ev;
        if (journal_read(line, &a, &ev, &e) < 0)
            return false;
        if (verify && ev.kind == EVENT_PASS) {
            arena_reset(&pass_arena);
            core_pass(c, ev.t_ms, &pass_arena, &p);
            at = 0;
        } else if (verify &&
                   (ev.kind == EVENT_PLACE || ev.kind == EVENT_TAKE || ev.kind == EVENT_PROMISE)) {
            if (at == p.n || !is_decided(&p.action[at++], ev.t_ms, line))
                return false;
        } else if (core_apply(c, &ev, &e) < 0) {
            return false;
        }
        arena_reset(&a);
    }
    return true;
}

/* When it may queue, and what it waits for. */
static bool same_wait(const struct core *a, const struct core *b, uint64_t id)
{
    struct after x[AFTER_MAX], y[AFTER_MAX];
    uint32_t n = core_job_after(a, (job_id){ id }, x);
    if (core_job_after(b, (job_id){ id }, y) != n)
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (x[i].first.v != y[i].first.v || x[i].n != y[i].n || x[i].when != y[i].when)
            return false;
    return true;
}

/* Devices are numbered as they were met, which another way to the same state need not do in that order. */
static bool same_request(struct request x, struct request y)
{
    for (int i = 0; i < DEVICES_EACH; i++) {
        x.device[i] = x.device[i] != 0;
        y.device[i] = y.device[i] != 0;
    }
    return memcmp(&x, &y, sizeof x) == 0;
}

static bool same_job(const struct core *a, const struct core *b, uint64_t id)
{
    struct job_view j, k;
    bool has = core_job(a, (job_id){ id }, &j);
    if (has != core_job(b, (job_id){ id }, &k))
        return false;
    return !has || (j.state == k.state && j.n == k.n && j.submit_ms == k.submit_ms &&
                    j.since_ms == k.since_ms && j.begin_ms == k.begin_ms && same_wait(a, b, id) &&
                    same_request(j.request, k.request) &&
                    (j.n == 0 || memcmp(j.slots, k.slots, j.n * sizeof *j.slots) == 0));
}

static void write_row(void *journal, const struct ledger_row *row)
{
    journal_write(&(struct event){ .kind = EVENT_LEDGER, .ledger = *row }, journal);
}

/* Whose the GPUs were, to the last thousandth and millisecond. */
static bool same_ledger(const struct core *a, const struct core *b, const struct world *w)
{
    AUTO(buf_free) struct buf x = BUF(64u << 20), y = BUF(64u << 20);
    struct ledger_span span = { INT64_MIN, w->now_ms };
    core_ledger(a, span, write_row, &x);
    core_ledger(b, span, write_row, &y);
    return x.n > 0 && str_eq(buf_str(&x), buf_str(&y));
}

static bool same_state(const struct core *a, const struct core *b, const struct world *w)
{
    struct share_view x, y;
    for (uint32_t i = 0; core_share(a, (share_id){ i }, w->now_ms, &x); i++)
        if (!core_share(b, (share_id){ i }, w->now_ms, &y) || strcmp(x.name, y.name) != 0 ||
            memcmp(&x.used, &y.used, sizeof x.used) != 0 || x.waiting != y.waiting ||
            x.past_milli < y.past_milli || x.past_milli > y.past_milli)
            return false;
    for (size_t i = 0; i < w->lives; i++)
        if (!same_job(a, b, w->live[i]))
            return false;
    return same_ledger(a, b, w);
}

static bool same_plan(const struct plan *a, const struct plan *b)
{
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (a->action[i].job.v != b->action[i].job.v || a->action[i].n != b->action[i].n ||
            memcmp(a->action[i].slots, b->action[i].slots, a->action[i].n * sizeof(struct slot)) !=
                0)
            return false;
    return true;
}

/* Also what is not in any view, like room that is kept, has to be the same: it shows in what
 * follows. */
static bool same_future(struct core *a, struct core *b, struct world *w)
{
    AUTO(arena_free) struct arena arena = { 0 };
    for (int step = 0; step < STEPS / 2; step++) {
        struct plan p, q;
        struct err e;
        struct event ev = world_event(w);
        int rc = core_apply(a, &ev, &e);
        if (core_apply(b, &ev, &e) != rc)
            return false;
        if (rc == 0)
            world_accepted(w, &ev);
        struct event end;
        while (world_never(w, a, &ev))
            if (!world_never(w, b, &end) || ev.job.id.v != end.job.id.v ||
                core_apply(a, &ev, &e) < 0 || core_apply(b, &end, &e) < 0)
                return false;
        if (world_never(w, b, &end) || core_wake_ms(a) != core_wake_ms(b))
            return false;
        core_pass(a, w->now_ms, &arena, &p);
        core_pass(b, w->now_ms, &arena, &q);
        if (!same_plan(&p, &q) || core_totals(a).kept_nodes != core_totals(b).kept_nodes)
            return false;
        arena_reset(&arena);
    }
    return same_ledger(a, b, w);
}

static void a_replayed_journal_equals_the_live_run(void)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        AUTO(core_free_p) struct core *live = core_new();
        AUTO(core_free_p) struct core *verified = core_new();
        AUTO(core_free_p) struct core *restored = core_new();
        AUTO(buf_free) struct buf journal = BUF(64u << 20);
        AUTO(world_free) struct world w;
        struct err e;
        world_init(&w, seed);
        record(&w, live, &journal);
        CHECK_AT(seed, buf_check(&journal, &e) == 0);
        CHECK_AT(seed, replay(buf_str(&journal), true, verified));
        CHECK_AT(seed, same_state(live, verified, &w));
        CHECK_AT(seed, replay(buf_str(&journal), false, restored));
        CHECK_AT(seed, same_state(live, restored, &w));
        CHECK_AT(seed, same_future(live, restored, &w));
    }
}

static void write_down(void *journal, const struct event *ev)
{
    journal_write(ev, journal);
}

static const char *share_path(const struct core *c, share_id id, int64_t now_ms, struct arena *a)
{
    struct share_view v;
    const char *path = "";
    for (; id.v != NONE && core_share(c, id, now_ms, &v); id = v.parent)
        path = arena_printf(a, "%s/%s", v.name, path);
    return path;
}

/* The same share of the other core, whose numbers may differ. */
static bool find_share(const struct core *c, const char *path, int64_t now_ms, struct arena *a,
                       struct share_view *out)
{
    for (uint32_t i = 0; core_share(c, (share_id){ i }, now_ms, out); i++)
        if (strcmp(share_path(c, (share_id){ i }, now_ms, a), path) == 0)
            return true;
    return false;
}

static bool same_rules(const struct share_view *x, const struct share_view *y)
{
    return x->removed == y->removed && x->closed == y->closed && x->until_ms == y->until_ms &&
           strcmp(x->pools, y->pools) == 0 && x->model_limits == y->model_limits &&
           x->budget_gpu_milli_ms == y->budget_gpu_milli_ms &&
           x->spent_gpu_milli_ms == y->spent_gpu_milli_ms &&
           x->budget_from_ms == y->budget_from_ms && x->budget_until_ms == y->budget_until_ms;
}

/* What a share of a GPU by its memory counts is said when it starts, by the machines that there are then: made anew after
 * those have changed it may count otherwise. */
static bool same_used(struct amounts x, struct amounts y, const struct world *w)
{
    if (w->changed)
        x.of[RES_GPU] = y.of[RES_GPU];
    return memcmp(&x, &y, sizeof x) == 0;
}

/* As same_state, but shares are found by name and the past may be off by a rounding. */
static bool same_facts(const struct core *a, const struct core *b, const struct world *w)
{
    AUTO(arena_free) struct arena arena = { 0 };
    struct share_view x, y;
    struct node_view m, n;
    for (uint32_t i = 0; core_share(a, (share_id){ i }, w->now_ms, &x); i++) {
        const char *path = share_path(a, (share_id){ i }, w->now_ms, &arena);
        if (!find_share(b, path, w->now_ms, &arena, &y) || !same_used(x.used, y.used, w) ||
            x.waiting != y.waiting || x.cost_milli != y.cost_milli ||
            x.past_milli - y.past_milli > 1 || y.past_milli - x.past_milli > 1 ||
            x.guarantee_milli != y.guarantee_milli ||
            memcmp(&x.limit, &y.limit, sizeof x.limit) != 0 || !same_rules(&x, &y))
            return false;
    }
    for (uint32_t i = 0; core_node(a, (node_id){ i }, &m); i++)
        if (!core_node(b, (node_id){ i }, &n) || strcmp(m.name, n.name) != 0 ||
            m.state != n.state || strcmp(m.pool, n.pool) != 0 || m.open != n.open ||
            m.opens_ms != n.opens_ms || m.closes_ms != n.closes_ms ||
            m.cpu_free_milli != n.cpu_free_milli || strcmp(m.devices, n.devices) != 0 ||
            memcmp(m.device_free, n.device_free, sizeof m.device_free) != 0 ||
            memcmp(m.gpu_free, n.gpu_free, sizeof m.gpu_free) != 0)
            return false;
    for (size_t i = 0; i < w->lives; i++)
        if (!same_job(a, b, w->live[i]))
            return false;
    return core_totals(a).waiting == core_totals(b).waiting;
}

static void a_snapshot_makes_the_state_anew(void)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        AUTO(core_free_p) struct core *live = core_new();
        AUTO(core_free_p) struct core *again = core_new();
        AUTO(core_free_p) struct core *third = core_new();
        AUTO(buf_free) struct buf journal = BUF(64u << 20), cut = BUF(64u << 20);
        AUTO(world_free) struct world w;
        struct err e;
        world_init(&w, seed);
        record(&w, live, &journal);
        core_snapshot(live, write_down, &cut);
        CHECK_AT(seed, replay(buf_str(&cut), false, again));
        CHECK_AT(seed, core_audit(again, &e) == 0);
        CHECK_AT(seed, same_facts(live, again, &w));
        CHECK_AT(seed, replay(buf_str(&cut), false, third));
        CHECK_AT(seed, same_future(again, third, &w));
    }
}

static const struct test tests[] = {
    { "a snapshot makes the state anew", a_snapshot_makes_the_state_anew },
    { "a replayed journal equals the live run", a_replayed_journal_equals_the_live_run },
};
TEST_CASES(tests)
