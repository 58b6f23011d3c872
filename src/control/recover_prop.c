/* Random walks with a control plane that is killed at any moment: what was answered is there, nothing
 * runs twice, and journal, rows and engine agree. */
#include "base/rng.h"
#include "control/lending.h"
#include "core/policy.h"
#include "tests/lib/controlling.h"

#define WALKS 200
#define TAKEN_LEAST 10 /* in all of them: else they try nothing of it */
#define STEPS 60
#define PROMISES_MAX 512

/* Something a caller was told, or waits to be told. */
struct promise {
    bool cancel; /* else a submit */
    uint64_t job;
    size_t n;
    int name; /* of a submit: its jobs are called s<name> */
    int told;
};

struct walk {
    struct controlling t;
    uint64_t seed;
    struct rng rng;
    struct promise promise[PROMISES_MAX];
    size_t promises;
    int names;
    bool away;
    uint64_t taken; /* jobs that were taken back, before the last death */
};

static void on_told(void *ctx)
{
    ((struct promise *)ctx)->told++;
}

/* ---- steps ---- */

static const char *one_of(struct rng *r, const char *const *list, uint32_t n)
{
    return list[rng_below(r, n)];
}
#define ONE_OF(r, ...)                                                                             \
    one_of(r, (const char *const[]){ __VA_ARGS__ },                                                \
           (uint32_t)(sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *)))

static void random_spec(struct walk *w, struct buf *b)
{
    struct rng *r = &w->rng;
    buf_printf(b, "{\"command\":[\"x\"],\"name\":\"s%d\",\"resources\":{\"gpus\":%u}", w->names,
               rng_below(r, 3));
    buf_printf(b, ",\"replicas\":%s,\"retries\":%s", ONE_OF(r, "1", "1", "2", "3"),
               ONE_OF(r, "0", "0", "2"));
    buf_printf(b, ",\"requeue\":%s,\"held\":%s", ONE_OF(r, "true", "false"),
               ONE_OF(r, "true", "false", "false", "false"));
    buf_printf(b, "%s%s", ONE_OF(r, "", "", ",\"array\":\"1-3\""),
               ONE_OF(r, "", "", ",\"max_time\":\"1s\""));
    if (rng_below(r, 4) == 0)
        buf_printf(b, ",\"begin\":%lld", (long long)w->t.now_ms + rng_below(r, 4000));
    uint64_t last = store_last_job(w->t.s.store);
    if (last && rng_below(r, 3) == 0)
        buf_printf(b, ",\"after\":[\"%s:%llu\"]", ONE_OF(r, "ok", "ok", "any", "bad"),
                   (unsigned long long)(last - rng_below(r, (uint32_t)MIN(last, UINT64_C(6)))));
    buf_printf(b, ",\"freeze\":{\"mode\":\"%s\",\"signal\":\"USR1\",\"grace\":\"60s\"}",
               ONE_OF(r, "pause", "signal", "signal", "requeue", "none"));
    buf_printf(b, ",\"env\":{\"SIM_RUN_MS\":\"%u\",\"SIM_EXIT%s\":\"%s\"", rng_below(r, 3000),
               ONE_OF(r, "", "_1"), ONE_OF(r, "0", "0", "0", "1"));
    buf_printf(b, ",\"SIM_SAVE_MS%s\":\"%s\",\"SIM_TERM_MS\":\"%s\",\"SIM_PAUSE_MS\":\"%u\"}}",
               ONE_OF(r, "", "_0"), ONE_OF(r, "-1", "0", "400"), ONE_OF(r, "0", "300", "-1"),
               rng_below(r, 100));
}

static void step_submit(struct walk *w)
{
    AUTO(buf_free) struct buf text = BUF(4096);
    AUTO(arena_free) struct arena a = { 0 };
    struct err e = { 0 };
    struct spec spec;
    if (w->promises == PROMISES_MAX)
        return;
    random_spec(w, &text);
    AUTO(json_free_p) struct json_doc *d = json_read(buf_str(&text), &e);
    CHECK_AT(w->seed, d && spec_read(json_root(d), &a, &spec, NULL, &e) == 0);
    struct promise *p = &w->promise[w->promises];
    *p = (struct promise){ .name = w->names++ };
    struct control_submit s = { .user = str_of(ONE_OF(&w->rng, "ana", "ana", "ben", "cid")),
                                .tenant = STR("vision"),
                                .sees = &storing_all,
                                .spec = &spec,
                                .n = 1 };
    if (control_submit(w->t.c, &s, (struct control_done){ on_told, p }, &p->job, &p->n, &e) == 0)
        w->promises++;
}

static bool some_living_job(struct walk *w, uint64_t *out, enum job_state *out_state)
{
    uint64_t last = store_last_job(w->t.s.store);
    struct job_view v;
    for (int tries = 0; tries < 8 && last; tries++) {
        *out = 1 + rng_below(&w->rng, (uint32_t)last);
        if (core_job(control_core(w->t.c), (job_id){ *out }, &v)) {
            *out_state = v.state;
            return true;
        }
    }
    return false;
}

/* Mostly one that its state can take. */
static enum control_verb some_verb(struct walk *w, enum job_state s)
{
    if (rng_below(&w->rng, 4) == 0)
        return (enum control_verb)rng_below(&w->rng, CONTROL_VERB_COUNT);
    if (s == JOB_HELD)
        return VERB_RELEASE;
    if (s == JOB_PAUSED || s == JOB_FROZEN)
        return VERB_THAW;
    return s == JOB_QUEUED ? VERB_HOLD : VERB_FREEZE;
}

static void step_verb(struct walk *w)
{
    enum job_state s;
    uint64_t job;
    struct err e;
    if (w->promises == PROMISES_MAX || !some_living_job(w, &job, &s))
        return;
    enum control_verb v = some_verb(w, s);
    struct promise *p = &w->promise[w->promises];
    *p = (struct promise){ .cancel = v == VERB_CANCEL, .job = job };
    struct control_done done = { on_told, p };
    if (v != VERB_CANCEL)
        done.fn = NULL;
    if (control_verb(w->t.c, job, v, STR("ana"), done, &e) == 0 && v == VERB_CANCEL)
        w->promises++;
}

/* Nobody who was not told may rely on anything. */
static void forget_untold(struct walk *w)
{
    size_t n = 0;
    for (size_t i = 0; i < w->promises; i++)
        if (w->promise[i].told)
            w->promise[n++] = w->promise[i];
    w->promises = n;
}

static void check_promises(struct walk *w)
{
    char name[32];
    for (size_t i = 0; i < w->promises; i++) {
        const struct promise *p = &w->promise[i];
        CHECK_AT(w->seed, p->told <= 1);
        snprintf(name, sizeof name, "s%d", p->name);
        for (size_t k = 0; k < p->n && p->told; k++)
            CHECK_AT(w->seed, str_is(controlling_job(&w->t, p->job + k).fixed.name, name));
    }
}

static void check_never(struct walk *w)
{
    struct sim_counts n = engine_sim_counts(&w->t.sim);
    CHECK_AT(w->seed, n.twice == 0);
    CHECK_AT(w->seed, n.overlaps == 0);
    CHECK_AT(w->seed, n.overbooked == 0);
}

static void die(struct walk *w)
{
    w->taken += control_stats(w->t.c).taken;
    controlling_kill(&w->t);
    forget_untold(w);
}

/* The machine is put into a pool or out of it, closed and opened; what is refused changes nothing. */
static void step_pool(struct walk *w)
{
    struct rng *r = &w->rng;
    struct err e;
    struct str window = str_of(ONE_OF(r, "", "", "Mon-Sun 00:00-24:00")),
               nodes = str_of(ONE_OF(r, "desk1", "desk1,desk2", ""));
    struct control_pool_change put = { .name = STR("desks"), .by = STR("op") };
    struct control_pool_except x = { .name = STR("desks"),
                                     .by = STR("op"),
                                     .regular = rng_below(r, 3) == 0,
                                     .except = { rng_below(r, 2) == 0, w->t.now_ms,
                                                 w->t.now_ms + rng_below(r, 120000) + 1 } };
    put.window = rng_below(r, 2) ? &window : NULL;
    put.nodes = rng_below(r, 2) ? &nodes : NULL;
    uint32_t what = rng_below(r, 5);
    int rc = what < 2 ? control_pool_put(w->t.c, &put, (struct control_done){ 0 }, &e)
           : what < 4 ? control_pool_except(w->t.c, &x, (struct control_done){ 0 }, &e)
                      : control_pool_delete(w->t.c, STR("desks"), STR("op"),
                                            (struct control_done){ 0 }, &e);
    CHECK_AT(w->seed, rc == 0 || e.code == ERR_NOT_FOUND);
}

/* The machine is reserved for a while, soon or at once, or given up. */
static void step_reserve(struct walk *w)
{
    struct rng *r = &w->rng;
    struct err e;
    struct str tenant = STR("vision"), nodes = STR("desk1");
    int64_t from_ms = w->t.now_ms + rng_below(r, 40000);
    struct control_reserve class = { .name = STR("class"),
                                     .tenant = &tenant,
                                     .from_ms = rng_below(r, 2) ? &from_ms : NULL,
                                     .for_ms = 1 + rng_below(r, 60000) };
    if (rng_below(r, 2))
        class.nodes = &nodes;
    else
        class.gpus = 1 + rng_below(r, 4);
    int rc = rng_below(r, 3) ? control_reserve(w->t.c, &class, (struct control_done){ 0 }, &e)
                             : control_reservation_delete(w->t.c, STR("class"), STR("op"),
                                                          (struct control_done){ 0 }, &e);
    bool none_is_up = rc < 0 && (e.code == ERR_CONFLICT || e.code == ERR_INVALID);
    CHECK_AT(w->seed, rc == 0 || e.code == ERR_NOT_FOUND || none_is_up);
}

static void step_kill(struct walk *w)
{
    if (rng_below(&w->rng, 2)) /* on the disk, and nothing done yet */
        controlling_round(&w->t);
    die(w);
    check_promises(w);
    if (rng_below(&w->rng, 2)) { /* life goes on without us */
        w->t.now_ms += rng_below(&w->rng, 2000);
        engine_sim_step(&w->t.sim, w->t.now_ms);
    }
    controlling_boot(&w->t);
    check_promises(w);
}

static struct store_job *rows_now(struct walk *w, size_t *out_n)
{
    *out_n = (size_t)store_last_job(w->t.s.store);
    struct store_job *rows = xcalloc(*out_n + 1, sizeof *rows);
    for (size_t i = 0; i < *out_n; i++)
        rows[i] = controlling_job(&w->t, i + 1);
    return rows;
}

static bool same_row(const struct store_job_now *a, const struct store_job_now *b)
{
    /* Of what is starting the engine tells how far it is. */
    bool begins = a->state == JOB_STARTING || a->state == JOB_THAWING;
    return a->state == b->state && a->state_ms == b->state_ms && a->started_ms == b->started_ms &&
           a->ended_ms == b->ended_ms && a->run == b->run && a->exit_code == b->exit_code &&
           a->exit_signal == b->exit_signal && a->ran_ms == b->ran_ms && a->fails == b->fails &&
           str_eq(a->end, b->end) && (begins || str_eq(a->message, b->message)) &&
           str_eq(a->where, b->where);
}

/* Out of rest into rest: a restart changes nothing. */
static void step_restart_at_rest(struct walk *w)
{
    size_t before, after;
    if (w->away)
        return;
    controlling_settle(&w->t);
    AUTO(free_p) struct store_job *a = rows_now(w, &before);
    die(w);
    controlling_boot(&w->t);
    AUTO(free_p) struct store_job *b = rows_now(w, &after);
    CHECK_AT(w->seed, before == after);
    for (size_t i = 0; i < before; i++)
        if (!same_row(&a[i].now, &b[i].now))
            test_fail(__FILE__, __LINE__, "seed %llu: job %zu: was %s '%.*s', is %s '%.*s'",
                      (unsigned long long)w->seed, i + 1, job_state_name(a[i].now.state),
                      STR_ARG(a[i].now.message), job_state_name(b[i].now.state),
                      STR_ARG(b[i].now.message));
    CHECK_STR(controlling_journal_differs(&w->t), "");
}

static void step(struct walk *w)
{
    struct rng *r = &w->rng;
    uint32_t what = rng_below(r, 100);
    if (what < 22) {
        step_submit(w);
    } else if (what < 26) {
        step_pool(w);
    } else if (what < 29) {
        step_reserve(w);
    } else if (what < 50) {
        step_verb(w);
    } else if (what < 60) {
        controlling_round(&w->t); /* a commit may go out; nobody waits for it */
    } else if (what < 68) {
        w->t.now_ms += rng_below(r, 300);
        engine_sim_step(&w->t.sim, w->t.now_ms);
    } else if (what < 84) {
        controlling_wait(&w->t, rng_below(r, 1500));
    } else if (what < 88) {
        w->away = !w->away;
        engine_sim_away(&w->t.sim, w->away);
    } else if (what < 96) {
        step_kill(w);
    } else {
        step_restart_at_rest(w);
    }
    check_never(w);
}

/* ---- the end ---- */

/* Everything that waits for a person is set free or cancelled; then all must end. */
static void finish(struct walk *w)
{
    struct err e;
    uint64_t last = store_last_job(w->t.s.store);
    engine_sim_away(&w->t.sim, false);
    if (control_pool_delete(w->t.c, STR("desks"), STR("op"), (struct control_done){ 0 }, &e) < 0)
        CHECK_AT(w->seed, e.code == ERR_NOT_FOUND);
    if (control_reservation_delete(w->t.c, STR("class"), STR("op"), (struct control_done){ 0 },
                                   &e) < 0)
        CHECK_AT(w->seed, e.code == ERR_NOT_FOUND);
    controlling_wait(&w->t, 10000);
    for (uint64_t id = 1; id <= last; id++) {
        enum job_state s = controlling_job(&w->t, id).now.state;
        enum control_verb v = s == JOB_HELD     ? VERB_RELEASE
                            : s == JOB_FREEZING ? VERB_CANCEL
                                                : VERB_THAW;
        if (s == JOB_HELD || s == JOB_FREEZING || s == JOB_FROZEN || s == JOB_PAUSED)
            CHECK_AT(w->seed,
                     control_verb(w->t.c, id, v, STR("ana"), (struct control_done){ 0 }, &e) == 0);
    }
    controlling_wait(&w->t, 3600000);
}

static void check_all_over(struct walk *w)
{
    struct err e;
    struct core_totals n = core_totals(control_core(w->t.c));
    for (uint64_t id = 1; id <= store_last_job(w->t.s.store); id++) {
        struct store_job j = controlling_job(&w->t, id);
        struct store_runs runs;
        if (!job_state_ended(j.now.state))
            test_fail(__FILE__, __LINE__, "seed %llu: job %llu is still %s",
                      (unsigned long long)w->seed, (unsigned long long)id,
                      job_state_name(j.now.state));
        CHECK_AT(w->seed, j.now.ended_ms > 0 && j.now.end.n > 0);
        CHECK_AT(w->seed,
                 store_job_runs(w->t.s.store, &storing_all, id, &w->t.s.arena, &runs, &e) == 0);
        CHECK_AT(w->seed, runs.n == j.now.run);
        for (size_t i = 0; i < runs.n; i++)
            CHECK_AT(w->seed, runs.v[i].ended_ms > 0);
    }
    for (size_t i = 0; i < w->promises; i++) {
        if (!w->promise[i].cancel)
            continue;
        enum job_state s = controlling_job(&w->t, w->promise[i].job).now.state;
        CHECK_AT(w->seed, s == JOB_CANCELLED || s == JOB_SUCCEEDED);
    }
    CHECK_AT(w->seed, memcmp(&n.free, &n.total, sizeof n.free) == 0);
    struct sim_counts sim = engine_sim_counts(&w->t.sim);
    CHECK_AT(w->seed, sim.alive == 0 && sim.ended == 0); /* and all was forgotten */
    CHECK_INT(control_stats(w->t.c).living, 0);
    CHECK_STR(controlling_journal_differs(&w->t), "");
}

/* Returns how many jobs were taken back in it. */
static uint64_t walk(uint64_t seed)
{
    struct walk *w = xcalloc(1, sizeof *w);
    w->seed = seed;
    w->rng.s = seed;
    struct policy policy = policy_default();
    policy.min_run_ms = policy.thaw_run_ms = 50; /* jobs live for seconds here */
    policy.review_ms = 100;
    controlling_begin_with(
        &w->t,
        &(struct sim_config){
            .seed = seed, .start_most_ms = 200, .fail_permille = 60, .lose_permille = 60 },
        &policy);
    for (int i = 0; i < STEPS; i++)
        step(w);
    finish(w);
    check_promises(w);
    check_all_over(w);
    check_never(w);
    uint64_t taken = w->taken + control_stats(w->t.c).taken;
    controlling_end(&w->t);
    free(w);
    return taken;
}

static void a_control_plane_may_die_at_any_moment(void)
{
    const char *only = getenv("SEED");
    uint64_t taken = 0;
    if (only)
        walk(strtoull(only, NULL, 10));
    for (uint64_t seed = 1; seed <= WALKS && !only; seed++)
        taken += walk(seed);
    CHECK(only || taken >= TAKEN_LEAST);
}

static const struct test tests[] = {
    { "a control plane may die at any moment: nothing answered is lost, nothing runs twice",
      a_control_plane_may_die_at_any_moment },
};
TEST_CASES(tests)
