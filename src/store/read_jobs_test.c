#include <sqlite3.h>

#include "base/rng.h"
#include "tests/lib/storing.h"

static const char *const tenants[] = { "audio", "text", "vision" };
static const char *const users[] = { "ana", "ben", "cleo", "dan" };
static const char *const names[] = { "train", "eval", "" };

#define JOBS 400u

/* What the store should hold, as plainly as can be. */
struct model {
    struct store_job job[JOBS];
    size_t n;
};

static void model_fill(struct model *m, struct storing *t, struct rng *r)
{
    struct store_batch *b = store_batch_new(t->store);
    uint64_t id = 0;
    for (m->n = 0; m->n < JOBS; m->n++) {
        id += rng_between(r, 1, 3); /* ids have holes */
        struct store_job *j = &m->job[m->n];
        *j = storing_job(id, tenants[rng_below(r, 3)], users[rng_below(r, 4)],
                         names[rng_below(r, 3)], (enum job_state)rng_below(r, JOB_STATE_COUNT));
        j->fixed.array = rng_below(r, 5) == 0 ? 10 + rng_below(r, 3) : 0;
        j->now.state_ms = rng_between(r, 1, 1000);
        storing_add(b, j);
    }
    for (int i = 0; i < 200; i++) { /* and some go on */
        struct store_job *j = &m->job[rng_below(r, JOBS)];
        j->now.state = (enum job_state)rng_below(r, JOB_STATE_COUNT);
        j->now.state_ms = rng_between(r, 1, 1000);
        store_set_job(b, j->fixed.id, &j->now);
    }
    storing_commit(t, b);
}

static bool in_scope(const struct store_scope *who, struct str tenant)
{
    for (size_t i = 0; i < who->n; i++)
        if (str_eq(who->tenant[i], tenant))
            return true;
    return who->everything;
}

static bool fits(const struct store_scope *who, const struct store_filter *f,
                 const struct store_job *j)
{
    return in_scope(who, j->fixed.tenant) && (!f->states || (f->states >> j->now.state & 1)) &&
           (!f->user.n || str_eq(f->user, j->fixed.user)) &&
           (!f->tenant.n || str_eq(f->tenant, j->fixed.tenant)) &&
           (!f->name.n || str_eq(f->name, j->fixed.name)) &&
           (!f->array || f->array == j->fixed.array) && (!f->before || j->fixed.id < f->before) &&
           (!f->ended_after_ms || !job_state_ended(j->now.state) ||
            j->now.state_ms > f->ended_after_ms);
}

static struct store_filter random_filter(struct rng *r, uint64_t last)
{
    struct store_filter f = { .limit = rng_below(r, 3) ? rng_below(r, 60) : 0 };
    if (rng_below(r, 2))
        f.states = rng_below(r, 1 << JOB_STATE_COUNT);
    if (rng_below(r, 3) == 0)
        f.user = str_of(users[rng_below(r, 4)]);
    if (rng_below(r, 3) == 0)
        f.tenant = rng_below(r, 9) ? str_of(tenants[rng_below(r, 3)]) : STR("nobody");
    if (rng_below(r, 3) == 0)
        f.name = rng_below(r, 9) ? str_of(names[rng_below(r, 2)]) : STR("other");
    if (rng_below(r, 6) == 0)
        f.array = 10 + rng_below(r, 4);
    if (rng_below(r, 3) == 0)
        f.before = 1 + rng_below(r, (uint32_t)last + 5);
    if (rng_below(r, 3) == 0)
        f.ended_after_ms = rng_between(r, 1, 1000);
    return f;
}

static void check_list(struct storing *t, const struct model *m, const struct store_scope *who,
                       const struct store_filter *f, uint64_t seed)
{
    struct err e = { 0 };
    struct store_jobs got;
    CHECK_AT(seed, store_jobs_list(t->store, who, f, &t->arena, &got, &e) == 0);
    size_t at = 0, limit = f->limit ? f->limit : 1000;
    for (size_t i = m->n; i-- > 0 && at < limit;) {
        const struct store_job *want = &m->job[i];
        if (!fits(who, f, want))
            continue;
        CHECK_AT(seed, at < got.n && got.v[at].fixed.id == want->fixed.id);
        CHECK_AT(seed, got.v[at].now.state == want->now.state && got.v[at].fixed.spec.n == 0);
        CHECK_AT(seed, str_eq(got.v[at].fixed.tenant, want->fixed.tenant));
        at++;
    }
    CHECK_AT(seed, at == got.n);
}

static struct store_scope random_scope(struct rng *r, struct str of[static 3])
{
    if (rng_below(r, 2))
        return storing_all;
    struct store_scope who = { .tenant = of, .n = rng_below(r, 3) };
    for (size_t i = 0; i < who.n; i++)
        of[i] = str_of(tenants[rng_below(r, 3)]);
    return who;
}

static void lists_and_counts_are_those_of_a_plain_model(void)
{
    for (uint64_t seed = 1; seed <= 10; seed++) {
        AUTO(storing_end) struct storing t;
        storing_begin(&t);
        storing_open(&t);
        struct rng r = { seed };
        static struct model m;
        model_fill(&m, &t, &r);
        for (int i = 0; i < 300; i++) {
            struct str of[3];
            struct store_scope who = random_scope(&r, of);
            struct store_filter f = random_filter(&r, m.job[m.n - 1].fixed.id);
            arena_reset(&t.arena);
            check_list(&t, &m, &who, &f, seed);
            uint64_t n[JOB_STATE_COUNT], want[JOB_STATE_COUNT] = { 0 };
            struct err e = { 0 };
            for (size_t k = 0; k < m.n; k++)
                want[m.job[k].now.state] += in_scope(&who, m.job[k].fixed.tenant);
            CHECK_AT(seed, store_jobs_count(t.store, &who, n, &e) == 0);
            CHECK_AT(seed, memcmp(n, want, sizeof n) == 0);
        }
    }
}

/* Long runs of ids of one tenant and state: a page needs several rounds of pieces. */
static void pages_follow_one_another(void)
{
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    storing_open(&t);
    struct store_batch *b = store_batch_new(t.store);
    for (uint64_t id = 1; id <= 2500; id++) {
        struct store_job j = storing_job(id, tenants[id / 1200 % 3], "ana", "train",
                                         (enum job_state)(id / 400 % JOB_STATE_COUNT));
        storing_add(b, &j);
    }
    storing_commit(&t, b);
    struct store_filter f = { .limit = 5000 };
    uint64_t next = 2500;
    size_t pages = 0;
    struct store_jobs got;
    struct err e = { 0 };
    do {
        CHECK(store_jobs_list(t.store, &storing_all, &f, &t.arena, &got, &e) == 0);
        CHECK(got.n <= 1000);
        for (size_t i = 0; i < got.n; i++)
            CHECK(got.v[i].fixed.id == next--);
        f.before = next + 1;
        pages++;
    } while (got.n);
    CHECK(next == 0 && pages == 4);
}

/* More than the list is ready to put in order by time: it goes by ids then, to the same effect. */
static void many_that_ended_since_are_listed_too(void)
{
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    storing_open(&t);
    struct store_batch *b = store_batch_new(t.store);
    for (uint64_t id = 1; id <= 7000; id++) {
        struct store_job j = storing_job(id, "vision", "ana", "train", JOB_SUCCEEDED);
        j.now.state_ms = id % 2 ? 100 : 50;
        storing_add(b, &j);
    }
    storing_commit(&t, b);
    struct store_jobs got;
    struct err e = { 0 };
    static const int64_t after[] = { 40, 60, 100 };
    static const uint64_t step[] = { 1, 2, 0 };
    for (size_t i = 0; i < ARRAY_LEN(after); i++) {
        struct store_filter f = { .ended_after_ms = after[i], .limit = 100 };
        CHECK(store_jobs_list(t.store, &storing_all, &f, &t.arena, &got, &e) == 0);
        CHECK_INT(got.n, step[i] ? 100 : 0);
        for (size_t k = 1; k < got.n; k++)
            CHECK(got.v[k].fixed.id + step[i] == got.v[k - 1].fixed.id);
    }
}

static void a_job_of_another_tenant_does_not_exist(void)
{
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    storing_open(&t);
    struct store_job j = storing_job(5, "vision", "ana", "train", JOB_RUNNING), got = { 0 };
    struct store_batch *b = store_batch_new(t.store);
    storing_add(b, &j);
    storing_commit(&t, b);
    struct str of[] = { STR("audio"), STR("vision") };
    struct store_scope nobody = { 0 }, audio = { .tenant = of, .n = 1 },
                       both = { .tenant = of, .n = 2 };
    struct err unseen = { 0 }, missing = { 0 };
    CHECK(store_job_get(t.store, &nobody, 5, &t.arena, &got, &unseen) < 0);
    CHECK(store_job_get(t.store, &audio, 5, &t.arena, &got, &unseen) < 0);
    CHECK(unseen.code == ERR_NOT_FOUND && got.fixed.id == 0);
    CHECK(store_job_brief(t.store, &audio, 5, &t.arena, &got, &unseen) < 0);
    CHECK(store_job_get(t.store, &both, 5, &t.arena, &got, &unseen) == 0 && got.fixed.id == 5);
    CHECK(got.fixed.spec.n > 0);
    CHECK(store_job_brief(t.store, &both, 5, &t.arena, &got, &unseen) == 0);
    CHECK(got.fixed.id == 5 && got.fixed.spec.n == 0); /* or whoever made it long is read often */
    CHECK(store_job_get(t.store, &storing_all, UINT64_MAX, &t.arena, &got, &missing) < 0);
    CHECK(missing.code == ERR_NOT_FOUND);
    struct store_filter f = { .tenant = STR("vision") };
    struct store_jobs jobs;
    CHECK(store_jobs_list(t.store, &audio, &f, &t.arena, &jobs, &missing) == 0 && jobs.n == 0);
}

struct seen {
    struct storing *t;
    uint64_t sum, n;
    bool ok;
};

/* Also reads while it is being told: the two do not disturb each other. */
static int see(void *ctx, const struct store_job *j, struct err *e)
{
    struct seen *s = ctx;
    struct store_job again;
    char spec[32];
    snprintf(spec, sizeof spec, "{\"n\":%llu}", (unsigned long long)j->fixed.id);
    s->ok &= !job_state_ended(j->now.state);
    s->sum += j->fixed.id;
    s->n++;
    arena_reset(&s->t->arena);
    if (store_job_get(s->t->store, &storing_all, j->fixed.id, &s->t->arena, &again, e) < 0)
        return -1;
    s->ok &= str_is(again.fixed.spec, spec);
    return 0;
}

static void those_that_live_come_in_order(void)
{
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    storing_open(&t);
    struct store_batch *b = store_batch_new(t.store);
    uint64_t sum = 0, n = 0;
    for (uint64_t id = 1; id <= 1000; id++) {
        char spec[32];
        struct store_job j = storing_job(id, tenants[id % 3], "ana", "train",
                                         (enum job_state)(id % JOB_STATE_COUNT));
        snprintf(spec, sizeof spec, "{\"n\":%llu}", (unsigned long long)id);
        j.fixed.spec = str_of(spec);
        storing_add(b, &j);
        sum += job_state_ended(j.now.state) ? 0 : id;
        n += !job_state_ended(j.now.state);
    }
    storing_commit(&t, b);
    struct seen s = { .t = &t, .ok = true };
    struct err e = { 0 };
    CHECK(store_living_jobs(t.store, see, &s, &e) == 0);
    CHECK(s.ok && s.sum == sum && s.n == n);
}

static void a_state_nobody_knows_is_an_error_and_no_crash(void)
{
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    storing_open(&t);
    struct store_job j = storing_job(5, "vision", "ana", "train", JOB_RUNNING);
    struct store_batch *b = store_batch_new(t.store);
    storing_add(b, &j);
    storing_commit(&t, b);
    t.store = store_close(t.store);
    sqlite3 *db = NULL;
    CHECK(sqlite3_open(t.path, &db) == SQLITE_OK);
    CHECK(sqlite3_exec(db, "UPDATE job SET state = 99, sum = 0", NULL, NULL, NULL) == SQLITE_OK);
    sqlite3_close(db);
    storing_open(&t);
    struct err e = { 0 };
    uint64_t n[JOB_STATE_COUNT];
    CHECK(store_job_get(t.store, &storing_all, 5, &t.arena, &j, &e) < 0);
    CHECK(e.code == ERR_INTERNAL && strstr(e.msg, "job 5 has state 99"));
    CHECK(store_jobs_count(t.store, &storing_all, n, &e) == 0);
}

static const struct test tests[] = {
    { "lists and counts are those of a plain model", lists_and_counts_are_those_of_a_plain_model },
    { "pages follow one another without hole or double", pages_follow_one_another },
    { "many that ended since are listed too", many_that_ended_since_are_listed_too },
    { "a job of another tenant does not exist", a_job_of_another_tenant_does_not_exist },
    { "those that live come in order", those_that_live_come_in_order },
    { "a state nobody knows is an error and no crash",
      a_state_nobody_knows_is_an_error_and_no_crash },
};
TEST_CASES(tests)
