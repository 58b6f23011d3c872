#include "engine/sim/sim.h"

#include <signal.h>
#include <stdio.h>

#include "tests/lib/conform.h"
#include "tests/lib/test.h"

/* ---- the promises of every engine ---- */

struct
try {
    struct conform c;
    int64_t now_ms;
};

static void advance(void *ctx, int64_t ms)
{
    struct try *t = ctx;
    t->now_ms += ms;
    engine_sim_step(&t->c.engine, t->now_ms);
}

static void add(struct arena *a, const char **env, uint32_t *n, enum sim_word w, int64_t value)
{
    env[(*n)++] = arena_printf(a, "%s=%lld", sim_word_name(w), (long long)value);
}

static void program(void *ctx, const struct conform_program *p, struct arena *a, struct spec *out)
{
    static const char *const argv[] = { "./train", NULL };
    const char **env = arena_array(a, const char *, SIM_WORD_COUNT + 1);
    (void)ctx;
    add(a, env, &out->n_env, SIM_RUN_MS, p->run_ms);
    add(a, env, &out->n_env, SIM_EXIT, p->code);
    add(a, env, &out->n_env, SIM_TERM_MS, p->ignores_term ? -1 : 0);
    add(a, env, &out->n_env, SIM_START_FAILS, p->cannot_start);
    if (p->saves_with) {
        add(a, env, &out->n_env, SIM_SAVE_MS, 5);
        add(a, env, &out->n_env, SIM_SAVE_EXIT, p->saves_with);
    }
    out->argv = argv;
    out->n_args = 1;
    out->env = env;
}

static int runs(void *ctx, struct task_id t)
{
    const struct try *y = ctx;
    struct sim_counts n = engine_sim_counts(&y->c.engine);
    struct sim_task_view v;
    bool began = engine_sim_look(&y->c.engine, t, &v) && (v.running || v.paused || v.ended);
    return began + (int)n.twice;
}

static const struct sim_node nodes[] = {
    { .name = "sim1",
      .model = "A100",
      .gpus = 4,
      .gpu_mem_mib = 40960,
      .cpu_milli = 64000,
      .mem_mib = 262144 },
    { .name = "sim2", .cpu_milli = 8000, .mem_mib = 16384 },
};

static void open_sim(struct try *t, uint64_t seed)
{
    *t = (struct try){ .now_ms = 1000000 };
    struct sim_config config = { .node = nodes,
                                 .nodes = ARRAY_LEN(nodes),
                                 .now_ms = t->now_ms,
                                 .seed = seed,
                                 .start_least_ms = 5,
                                 .start_most_ms = 40,
                                 .sink = conform_sink,
                                 .ctx = &t->c };
    struct err e;
    t->c = (struct conform){ .engine = engine_sim_new(&config),
                             .user = { STR("ana"), STR("/home/ana"), 1000, 1000, NULL, 0 },
                             .advance = advance,
                             .program = program,
                             .runs = runs,
                             .ctx = t,
                             .patience_ms = 3600000,
                             .quiet_ms = 3000 };
    CHECK(t->c.engine.ops->sync(t->c.engine.self, &e) == 0);
    advance(t, 10);
}

static void close_sim(struct try *t)
{
    t->c.engine.ops->free(t->c.engine.self);
    conform_clear(&t->c);
}

static void run_case(void (*fn)(struct conform *c))
{
    struct try t;
    open_sim(&t, 1);
    fn(&t.c);
    struct sim_counts n = engine_sim_counts(&t.c.engine);
    CHECK_INT(n.twice + n.overlaps + n.overbooked, 0);
    close_sim(&t);
}

#define X(id, name)                                                                                \
    static void id##_conforms(void)                                                                \
    {                                                                                              \
        run_case(conform_##id);                                                                    \
    }
CONFORM_CASES(X)
#undef X

/* ---- what only this one promises ---- */

struct task_of {
    uint64_t job;
    uint32_t run, replica;
    uint16_t gpu_mask, milli;
    const char *argv[3];
    const char *env[8];
    int64_t max_time_ms;
};

static int start(struct try *t, const struct task_of *o, struct err *e)
{
    static const char *const none[] = { NULL };
    struct spec s = { .image = STR("host"), .grace_ms = 1000, .freeze_signal = SIGUSR1 };
    struct slot slot[2] = { { .milli = GPU_MILLI }, { .milli = GPU_MILLI } };
    slot[o->replica] = (struct slot){ .gpu_mask = o->gpu_mask, .milli = o->milli };
    s.argv = o->argv;
    s.env = o->env;
    while (o->argv[s.n_args])
        s.n_args++;
    while (o->env[s.n_env])
        s.n_env++;
    struct engine_start start = { .task = { o->job, o->run, o->replica },
                                  .spec = &s,
                                  .user = t->c.user,
                                  .slots = slot,
                                  .n_slots = 2,
                                  .env = none,
                                  .max_time_ms = o->max_time_ms };
    return t->c.engine.ops->start(t->c.engine.self, &start, e);
}

static const struct conform_event *end_of(const struct try *t, uint64_t job, uint32_t replica)
{
    for (size_t i = 0; i < t->c.n; i++)
        if (t->c.seen[i].kind == ENGINE_ENDED && t->c.seen[i].task.job == job &&
            t->c.seen[i].task.replica == replica)
            return &t->c.seen[i];
    return NULL;
}

static void programs_do_what_their_words_say(void)
{
    static const struct {
        struct task_of task;
        int64_t after_ms; /* still there just before */
        int code, signal;
        enum task_end why;
    } rows[] = {
        { { .argv = { "true" } }, 0, 0, 0, END_EXITED },
        { { .argv = { "/bin/false" } }, 0, 1, 0, END_EXITED },
        { { .argv = { "sleep", "3" } }, 3000, 0, 0, END_EXITED },
        { { .argv = { "x" }, .env = { "SIM_RUN_MS=70", "SIM_EXIT=6" } }, 70, 6, 0, END_EXITED },
        { { .argv = { "x" }, .env = { "SIM_SIGNAL=11" } }, 1000, 0, 11, END_EXITED },
        { { .argv = { "x" }, .env = { "SIM_LOST_MS=40" } }, 40, 0, 9, END_LOST },
        { { .argv = { "x" }, .env = { "SIM_OOM_MS=50" } }, 50, 0, 9, END_MEMORY },
        { { .argv = { "x" }, .env = { "SIM_EXIT_0=8", "SIM_EXIT=1" } }, 1000, 8, 0, END_EXITED },
        { { .argv = { "x" }, .env = { "SIM_TERM_EXIT=3" }, .max_time_ms = 100 },
          100,
          3,
          0,
          END_TIME_LIMIT },
        { { .argv = { "x" }, .env = { "SIM_TERM_MS=-1", "SIM_RUN_MS=-1" }, .max_time_ms = 100 },
          1100,
          0,
          9,
          END_TIME_LIMIT },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct try t;
        struct err e;
        open_sim(&t, 1);
        struct task_of o = rows[i].task;
        const char *env[8] = { "SIM_START_MS=10" };
        for (size_t k = 0; k < 7; k++)
            env[k + 1] = o.env[k];
        memcpy(o.env, env, sizeof o.env);
        o.job = 1;
        CHECK_AT(i, start(&t, &o, &e) == 0);
        advance(&t, 10 + rows[i].after_ms - 1);
        CHECK_AT(i, end_of(&t, 1, 0) == NULL);
        advance(&t, 1);
        const struct conform_event *ev = end_of(&t, 1, 0);
        CHECK_AT(i, ev != NULL);
        CHECK_INT(ev->code, rows[i].code);
        CHECK_INT(ev->signal, rows[i].signal);
        CHECK_AT(i, ev->why == rows[i].why);
        close_sim(&t);
    }
}

static void a_script_that_cannot_be_read_is_refused_by_its_word(void)
{
    struct try t;
    struct err e;
    open_sim(&t, 1);
    CHECK(start(&t, &(struct task_of){ .job = 1, .argv = { "x" }, .env = { "SIM_EXIT=no" } }, &e) <
          0);
    CHECK(strstr(e.msg, "SIM_EXIT"));
    close_sim(&t);
}

/* When each of twenty jobs was told as started; `turned`: they are started the other way round. */
static void note_starts(uint64_t seed, bool turned, int64_t at[static 21])
{
    struct try t;
    struct err e;
    size_t looked = 0;
    open_sim(&t, seed);
    for (uint64_t i = 1; i <= 20; i++)
        CHECK(start(&t, &(struct task_of){ .job = turned ? 21 - i : i, .argv = { "x" } }, &e) == 0);
    for (int ms = 0; ms < 50; ms++) {
        for (; looked < t.c.n; looked++)
            if (t.c.seen[looked].kind == ENGINE_STARTED)
                at[t.c.seen[looked].task.job] = ms;
        advance(&t, 1);
    }
    close_sim(&t);
}

static void the_seed_decides_and_nothing_else(void)
{
    int64_t at[3][21] = { 0 };
    note_starts(77, false, at[0]);
    note_starts(77, true, at[1]);
    note_starts(78, false, at[2]);
    CHECK(at[0][1] >= 5 && at[0][20] >= 5);
    CHECK(memcmp(at[0], at[1], sizeof at[0]) == 0);
    CHECK(memcmp(at[0], at[2], sizeof at[0]) != 0);
}

static void luck_fails_starts_and_loses_tasks(void)
{
    struct sim_config config = {
        .node = nodes, .nodes = 1, .seed = 5, .fail_permille = 300, .lose_permille = 500
    };
    struct try t = { 0 };
    struct err e;
    size_t failed = 0, lost = 0;
    config.sink = conform_sink;
    config.ctx = &t.c;
    t.c = (struct conform){ .engine = engine_sim_new(&config), .ctx = &t };
    for (uint64_t i = 1; i <= 200; i++)
        CHECK(start(&t, &(struct task_of){ .job = i, .argv = { "x" } }, &e) == 0);
    advance(&t, 5000);
    for (size_t i = 0; i < t.c.n; i++) {
        failed += t.c.seen[i].kind == ENGINE_FAILED;
        lost += t.c.seen[i].kind == ENGINE_ENDED && t.c.seen[i].why == END_LOST;
    }
    CHECK(failed > 40 && failed < 80);
    CHECK(lost > 50 && lost < 90);
    close_sim(&t);
}

static void it_outlives_its_listener(void)
{
    struct try t;
    struct err e;
    open_sim(&t, 1);
    CHECK(start(&t, &(struct task_of){ .job = 1, .argv = { "sleep", "1" } }, &e) == 0);
    CHECK(start(&t, &(struct task_of){ .job = 2, .argv = { "sleep", "100" } }, &e) == 0);
    advance(&t, 500);
    engine_sim_listen(&t.c.engine, NULL, NULL);
    advance(&t, 5000);
    CHECK(end_of(&t, 1, 0) == NULL);
    t.c.n = 0;
    engine_sim_listen(&t.c.engine, conform_sink, &t.c);
    CHECK(t.c.engine.ops->sync(t.c.engine.self, &e) == 0);
    advance(&t, 0);
    CHECK(end_of(&t, 1, 0) != NULL);
    CHECK_INT(t.c.seen[t.c.n - 1].kind, ENGINE_READY);
    CHECK_INT(engine_sim_counts(&t.c.engine).starts, 2);
    close_sim(&t);
}

static void away_loses_verbs_and_tells_all_when_back(void)
{
    struct try t;
    struct err e;
    open_sim(&t, 1);
    engine_sim_away(&t.c.engine, true);
    advance(&t, 10);
    CHECK_INT(t.c.seen[t.c.n - 1].kind, ENGINE_AWAY);
    CHECK(start(&t, &(struct task_of){ .job = 1, .argv = { "true" } }, &e) == 0);
    advance(&t, 1000);
    CHECK_INT(t.c.seen[t.c.n - 1].kind, ENGINE_AWAY);
    engine_sim_away(&t.c.engine, false);
    advance(&t, 10);
    CHECK_INT(t.c.seen[t.c.n - 1].kind, ENGINE_READY);
    CHECK_INT(engine_sim_counts(&t.c.engine).starts, 0);
    engine_sim_away(&t.c.engine, true); /* however short: a verb may have been lost */
    engine_sim_away(&t.c.engine, false);
    t.c.n = 0;
    advance(&t, 10);
    CHECK_INT(t.c.seen[0].kind, ENGINE_AWAY);
    CHECK_INT(t.c.seen[t.c.n - 1].kind, ENGINE_READY);
    close_sim(&t);
}

static void it_sees_what_must_never_happen(void)
{
    struct try t;
    struct err e;
    struct task_of half = { .job = 1, .run = 1, .gpu_mask = 1, .milli = 500, .argv = { "x" } };
    open_sim(&t, 1);
    CHECK(start(&t, &half, &e) == 0);
    half.job = 2;
    CHECK(start(&t, &half, &e) == 0);
    advance(&t, 100);
    struct sim_counts n = engine_sim_counts(&t.c.engine);
    CHECK_INT(n.overbooked + n.overlaps + n.twice, 0);
    CHECK_INT(n.alive, 2);
    half.run = 2; /* a second run of job 2, on a third half of the GPU */
    CHECK(start(&t, &half, &e) == 0);
    advance(&t, 100);
    n = engine_sim_counts(&t.c.engine);
    CHECK_INT(n.overbooked, 1);
    CHECK_INT(n.overlaps, 1);
    advance(&t, 5000);
    CHECK(t.c.engine.ops->forget(t.c.engine.self, (struct task_id){ 1, 1, 0 }, &e) == 0);
    half = (struct task_of){ .job = 1, .run = 1, .argv = { "x" } };
    CHECK(start(&t, &half, &e) == 0);
    advance(&t, 100);
    CHECK_INT(engine_sim_counts(&t.c.engine).twice, 1);
    close_sim(&t);
}

static void a_stop_before_the_start_begins_nothing(void)
{
    struct try t;
    struct err e;
    open_sim(&t, 1);
    CHECK(start(&t, &(struct task_of){ .job = 1, .argv = { "x" }, .env = { "SIM_START_MS=500" } },
                &e) == 0);
    CHECK(t.c.engine.ops->stop(t.c.engine.self, (struct task_id){ 1, 0, 0 }, 5000, END_STOPPED,
                               &e) == 0);
    advance(&t, 10);
    CHECK(end_of(&t, 1, 0) && end_of(&t, 1, 0)->why == END_STOPPED);
    CHECK_INT(engine_sim_counts(&t.c.engine).starts, 0);
    close_sim(&t);
}

static void next_says_when_to_come_back(void)
{
    struct try t;
    struct err e;
    int64_t at;
    open_sim(&t, 1);
    CHECK(!engine_sim_next(&t.c.engine, &at));
    CHECK(
        start(&t,
              &(struct task_of){ .job = 1, .argv = { "sleep", "2" }, .env = { "SIM_START_MS=30" } },
              &e) == 0);
    CHECK(engine_sim_next(&t.c.engine, &at) && at == t.now_ms + 30);
    advance(&t, 30);
    CHECK(engine_sim_next(&t.c.engine, &at) && at == t.now_ms + 2000);
    CHECK(t.c.engine.ops->sync(t.c.engine.self, &e) == 0);
    CHECK(engine_sim_next(&t.c.engine, &at) && at == t.now_ms);
    advance(&t, 2000);
    CHECK(!engine_sim_next(&t.c.engine, &at));
    close_sim(&t);
}

static void it_can_be_made_without_capabilities(void)
{
    struct sim_config config = { .node = nodes, .nodes = 1, .lacks = { [CAP_PAUSE] = true } };
    struct engine en = engine_sim_new(&config);
    CHECK(!en.caps[CAP_PAUSE] && en.caps[CAP_SIGNAL] && !en.caps[CAP_ATTACH]);
    en.ops->free(en.self);
}

static const struct test tests[] = {
#define X(id, name) { name, id##_conforms },
    CONFORM_CASES(X)
#undef X
        { "programs do what their words say, at their time", programs_do_what_their_words_say },
    { "a script that cannot be read is refused by its word",
      a_script_that_cannot_be_read_is_refused_by_its_word },
    { "the seed decides and not the order of the calls", the_seed_decides_and_nothing_else },
    { "luck fails starts and loses tasks, as many as asked", luck_fails_starts_and_loses_tasks },
    { "it outlives its listener and tells the next one all", it_outlives_its_listener },
    { "while it is away verbs are lost, and back it tells all",
      away_loses_verbs_and_tells_all_when_back },
    { "it sees what must never happen", it_sees_what_must_never_happen },
    { "a stop before the start begins nothing", a_stop_before_the_start_begins_nothing },
    { "next says when to come back", next_says_when_to_come_back },
    { "it can be made without capabilities", it_can_be_made_without_capabilities },
};
TEST_CASES(tests)
