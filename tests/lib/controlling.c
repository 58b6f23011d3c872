#include "tests/lib/controlling.h"

#include <sys/stat.h>

#include "core/policy.h"
#include "journal/journal.h"

#define ROUNDS_MAX 10000

static void on_pause(void *ctx)
{
    loop_stop(ctx);
}

static void count_answer(void *ctx)
{
    ++*(int *)ctx;
}

/* In memory where the machine has such a folder: thousands of commits in a second. */
static void make_store(struct controlling *t)
{
    struct storing *s = &t->s;
    *s = (struct storing){ .loop = loop_new() };
    snprintf(s->dir, sizeof s->dir, "%s/nightshift-control-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    CHECK(mkdtemp(s->dir) != NULL);
    snprintf(s->path, sizeof s->path, "%s/store.db", s->dir);
    storing_open(s);
}

void controlling_begin(struct controlling *t, const struct sim_config *config)
{
    struct policy p = policy_default();
    controlling_begin_with(t, config, &p);
}

void controlling_begin_with(struct controlling *t, const struct sim_config *config,
                            const struct policy *policy)
{
    controlling_prepare(t, config, policy);
    controlling_boot(t);
}

void controlling_prepare(struct controlling *t, const struct sim_config *config,
                         const struct policy *policy)
{
    static const struct sim_node node = { .name = "desk1",
                                          .model = "A100",
                                          .gpus = 4,
                                          .gpu_mem_mib = 40960,
                                          .cpu_milli = 16000,
                                          .mem_mib = 65536 };
    struct sim_config sim = config ? *config : (struct sim_config){ 0 };
    *t = (struct controlling){ .now_ms = 1700000000000, .policy = *policy };
    make_store(t);
    if (getenv("CONTROL_LOG"))
        t->log = log_new(stderr, LOG_DEBUG_, LOG_TEXT, clock_manual(&t->now_ms));
    if (!sim.nodes) {
        sim.node = &node;
        sim.nodes = 1;
    }
    sim.now_ms = t->now_ms;
    sim.sink = NULL;
    t->sim = engine_sim_new(&sim);
    t->pause = loop_wakeup(t->s.loop, on_pause, t->s.loop);
}

void controlling_end(struct controlling *t)
{
    t->c = control_free(t->c);
    t->sim.ops->free(t->sim.self);
    t->log = log_free(t->log);
    storing_end(&t->s);
}

void controlling_boot(struct controlling *t)
{
    const struct control_tenant_def tenant = { .name = STR("vision"), .spec = tenant_default() };
    struct control_config config = { .loop = t->s.loop,
                                     .forget_tasks = t->forget_tasks,
                                     .store = t->s.store,
                                     .log = t->log,
                                     .clock = t->steady ? steady_clock(t->steady)
                                                        : clock_manual(&t->now_ms),
                                     .steady = t->steady,
                                     .policy = t->policy,
                                     .bounds = t->bounds,
                                     .tenant = t->tenant ? t->tenant : &tenant,
                                     .tenants = t->tenant ? t->tenants : 1,
                                     .pool = t->pool,
                                     .pools = t->pools,
                                     .zone = tz_utc(),
                                     .homes = "/homes",
                                     .ear = t->ear,
                                     .keep = t->keep,
                                     .uid_base = 200000,
                                     .uid_min = 1000 };
    struct err e = { 0 };
    t->c = control_new(&config, &e);
    CHECK_STR(e.msg, "");
    engine_sim_listen(&t->sim, control_engine_event, t->c);
    CHECK(control_start(t->c, t->sim, &e) == 0);
    controlling_settle(t);
}

void controlling_kill(struct controlling *t)
{
    struct err e;
    engine_sim_listen(&t->sim, NULL, NULL);
    t->c = control_free(t->c);
    CHECK(store_flush(t->s.store, STORING_WAIT_MS, &e) == 0); /* what was handed over is there */
    storing_reopen(&t->s);
}

void controlling_round(struct controlling *t)
{
    loop_wakeup_send(t->pause);
    loop_run(t->s.loop);
}

void controlling_real(struct controlling *t, uint64_t ms)
{
    struct loop_watch *timer = loop_timer(t->s.loop, on_pause, t->s.loop);
    loop_timer_set(timer, ms, 0);
    loop_run(t->s.loop);
    loop_unwatch(timer);
}

static bool due_now(const struct controlling *t)
{
    int64_t at;
    return engine_sim_next(&t->sim, &at) && at <= t->now_ms;
}

void controlling_settle(struct controlling *t)
{
    struct err e;
    int quiet = 0;
    for (int i = 0; quiet < 2; i++) {
        CHECK(i < ROUNDS_MAX);
        uint64_t before = t->c ? control_stats(t->c).commits : 0;
        if (t->c)
            control_look_at_clock(t->c); /* our time is not the timer's */
        controlling_round(t);
        CHECK(store_flush(t->s.store, STORING_WAIT_MS, &e) == 0);
        bool due = due_now(t);
        engine_sim_step(&t->sim, t->now_ms);
        bool moved = due || due_now(t) || (t->c && control_stats(t->c).commits != before);
        quiet = moved ? 0 : quiet + 1;
    }
}

/* What comes next: of the engine, or a job's time to begin. */
static bool next_event(const struct controlling *t, int64_t *out_ms)
{
    int64_t wake_ms = t->c ? core_wake_ms(control_core(t->c)) : INT64_MAX, at = INT64_MAX;
    bool engine = engine_sim_next(&t->sim, &at);
    wake_ms = wake_ms > t->now_ms ? wake_ms : INT64_MAX; /* else it waits for the engine */
    *out_ms = MIN(engine ? at : INT64_MAX, wake_ms);
    return *out_ms != INT64_MAX;
}

void controlling_wait(struct controlling *t, int64_t ms)
{
    int64_t until = t->now_ms + ms, at;
    controlling_settle(t);
    while (next_event(t, &at) && at <= until) {
        t->now_ms = MAX(t->now_ms, at);
        engine_sim_step(&t->sim, t->now_ms); /* what starts now starts at this time */
        controlling_settle(t);
    }
    t->now_ms = until;
    engine_sim_step(&t->sim, t->now_ms);
    controlling_settle(t);
}

uint64_t controlling_submit_as(struct controlling *t, const char *user, const char *key,
                               const char *json)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct err e = { 0 };
    AUTO(json_free_p) struct json_doc *d = json_read(str_of(json), &e);
    CHECK_STR(e.msg, "");
    const struct json *root = json_root(d);
    size_t n = json_is_array(root) ? json_len(root) : 1, i = 0, jobs;
    struct spec *spec = arena_array(&a, struct spec, n);
    for (const struct json *o = json_is_array(root) ? json_first(root) : root; o && i < n;
         o = json_is_array(root) ? json_next(root, o) : NULL, i++)
        if (spec_read(o, &a, &spec[i], NULL, &e) < 0)
            test_fail(__FILE__, __LINE__, "%s: %s", json, e.msg);
    struct control_submit s = { .user = str_of(user),
                                .tenant = n && spec[0].tenant.n ? spec[0].tenant : STR("vision"),
                                .sees = &storing_all,
                                .uid = 1000,
                                .spec = spec,
                                .n = n,
                                .key = str_of(key) };
    uint64_t first;
    if (control_submit(t->c, &s, (struct control_done){ count_answer, &t->answered }, &first, &jobs,
                       &t->refused) < 0)
        return 0;
    return first;
}

uint64_t controlling_submit(struct controlling *t, const char *json)
{
    return controlling_submit_as(t, "ana", "", json);
}

int controlling_verb(struct controlling *t, uint64_t job, enum control_verb v)
{
    int rc = control_verb(t->c, job, v, STR("ana"),
                          (struct control_done){ count_answer, &t->answered }, &t->refused);
    controlling_settle(t);
    return rc;
}

struct store_job controlling_job(struct controlling *t, uint64_t id)
{
    struct store_job j = { 0 };
    struct err e = { 0 };
    if (store_job_get(t->s.store, &storing_all, id, &t->s.arena, &j, &e) < 0)
        test_fail(__FILE__, __LINE__, "job %llu: %s", (unsigned long long)id, e.msg);
    return j;
}

const char *controlling_state(struct controlling *t, uint64_t id)
{
    return job_state_name(controlling_job(t, id).now.state);
}

const char *controlling_text(struct controlling *t, struct str s)
{
    return arena_strndup(&t->s.arena, s.p ? s.p : "", s.n);
}

/* ---- the journal ---- */

struct replay {
    struct core *core;
    struct arena a;
};

static int replay_line(void *ctx, int64_t t_ms, struct str line, struct err *e)
{
    struct replay *r = ctx;
    struct event ev;
    (void)t_ms;
    arena_reset(&r->a);
    return journal_read(line, &r->a, &ev, e) < 0 ? -1 : core_apply(r->core, &ev, e);
}

static bool same_jobs(struct core *a, struct core *b, uint64_t last)
{
    for (uint64_t id = 1; id <= last; id++) {
        struct job_view x = { 0 }, y = { 0 };
        bool in_a = core_job(a, (job_id){ id }, &x), in_b = core_job(b, (job_id){ id }, &y);
        if (in_a != in_b || x.state != y.state || x.n != y.n || x.submit_ms != y.submit_ms ||
            x.since_ms != y.since_ms || x.begin_ms != y.begin_ms || x.afters != y.afters ||
            (x.n && memcmp(x.slots, y.slots, x.n * sizeof *x.slots) != 0))
            return false;
    }
    return true;
}

static bool same_shares(struct core *a, struct core *b, int64_t now_ms)
{
    struct share_view x, y;
    uint32_t i = 0;
    for (; core_share(a, (share_id){ i }, now_ms, &x); i++)
        if (!core_share(b, (share_id){ i }, now_ms, &y) || strcmp(x.name, y.name) != 0 ||
            x.cost_milli != y.cost_milli || x.waiting != y.waiting || x.past_milli < y.past_milli ||
            x.past_milli > y.past_milli || memcmp(&x.used, &y.used, sizeof x.used) != 0)
            return false;
    return !core_share(b, (share_id){ i }, now_ms, &y);
}

static void write_row(void *journal, const struct ledger_row *row)
{
    journal_write(&(struct event){ .kind = EVENT_LEDGER, .ledger = *row }, journal);
}

/* Today: the days before are let go once they are written down. */
static bool same_ledger(const struct core *a, const struct core *b, int64_t now_ms)
{
    AUTO(buf_free) struct buf x = BUF(1u << 20), y = BUF(1u << 20);
    struct ledger_span today = { now_ms / 86400000, now_ms };
    core_ledger(a, today, write_row, &x);
    core_ledger(b, today, write_row, &y);
    return x.n > 0 && str_eq(buf_str(&x), buf_str(&y));
}

const char *controlling_journal_differs(struct controlling *t)
{
    struct replay r = { .core = core_new() };
    struct err e = { 0 };
    struct core *live = control_core(t->c);
    struct core_totals x = core_totals(live), y;
    const char *what = "";
    if (store_journal(t->s.store, replay_line, &r, &e) < 0)
        what = controlling_text(t, str_of(e.msg));
    else if (core_audit(r.core, &e) < 0 || core_audit(live, &e) < 0)
        what = controlling_text(t, str_of(e.msg));
    else if (!same_jobs(live, r.core, store_last_job(t->s.store)))
        what = "jobs";
    else if (!same_shares(live, r.core, control_now_ms(t->c)))
        what = "shares";
    else if (!same_ledger(live, r.core, control_now_ms(t->c)))
        what = "ledger";
    y = core_totals(r.core);
    if (!*what && memcmp(&x.free, &y.free, sizeof x.free) != 0)
        what = "free resources";
    arena_free(&r.a);
    core_free(r.core);
    return what;
}
