/* Usage from the sums of days equals usage counted run by run, for any span; also in a store that was
 * made before there were such sums. */
#include <sqlite3.h>

#include "base/buf.h"
#include "base/rng.h"
#include "store/migrate.h"
#include "store/usage.h"
#include "tests/lib/storing.h"

#define WORLDS 40
#define RUNS 120
#define SPANS 60
#define DAY_MS INT64_C(86400000)
#define DAYS 12

static const char *const names[] = { "a", "b", "c" };

struct world {
    struct store_run run[RUNS];
    int64_t now_ms;
};

/* Often exactly at midnight, or just beside it. */
static int64_t moment(struct rng *r)
{
    int64_t day = (int64_t)rng_below(r, DAYS) * DAY_MS;
    switch (rng_below(r, 4)) {
    case 0: return day + DAY_MS;
    case 1: return day + DAY_MS - 1 + (int64_t)rng_below(r, 3);
    default: return day + 1 + (int64_t)rng_below(r, DAY_MS);
    }
}

static int64_t length(struct rng *r)
{
    switch (rng_below(r, 5)) {
    case 0: return 0;
    case 1: return DAY_MS * (int64_t)rng_below(r, 4);
    case 2: return (int64_t)rng_below(r, 5 * DAY_MS);
    default: return (int64_t)rng_below(r, 3600000);
    }
}

static void make(struct world *w, uint64_t seed)
{
    struct rng r = { seed };
    w->now_ms = (DAYS + 6) * DAY_MS + (int64_t)rng_below(&r, DAY_MS);
    for (size_t i = 0; i < RUNS; i++) {
        int64_t from_ms = moment(&r);
        bool living = rng_below(&r, 12) == 0;
        w->run[i] = (struct store_run){ .job = i / 2 + 1,
                                        .run = (uint32_t)(i % 2) + 1,
                                        .tenant = str_of(names[rng_below(&r, 2)]),
                                        .user = str_of(names[rng_below(&r, 3)]),
                                        .node = STR("n"),
                                        .model = str_of(names[rng_below(&r, 3)]),
                                        .gpu_milli = rng_below(&r, 8000),
                                        .cpu_milli = rng_below(&r, 64000),
                                        .started_ms = from_ms,
                                        .ended_ms = living ? 0 : from_ms + length(&r) };
    }
}

/* The slow way. */
static struct store_usage count(const struct world *w, const struct store_usage *key,
                                const struct store_span *span)
{
    struct store_usage u = { 0 };
    unsigned __int128 gpu = 0, cpu = 0;
    for (size_t i = 0; i < RUNS; i++) {
        const struct store_run *r = &w->run[i];
        int64_t end_ms = r->ended_ms ? r->ended_ms : span->now_ms;
        bool inside = (r->started_ms >= span->from_ms && r->started_ms < span->to_ms) ||
                      (r->started_ms < span->from_ms && end_ms > span->from_ms);
        if (!inside || span->from_ms >= span->to_ms || !str_eq(r->tenant, key->tenant) ||
            !str_eq(r->user, key->user) || !str_eq(r->model, key->model))
            continue;
        int64_t part_ms = MIN(end_ms, span->to_ms) - MAX(r->started_ms, span->from_ms);
        gpu += (unsigned __int128)(uint64_t)MAX(part_ms, INT64_C(0)) * r->gpu_milli;
        cpu += (unsigned __int128)(uint64_t)MAX(part_ms, INT64_C(0)) * r->cpu_milli;
        u.runs++;
    }
    u.gpu_ms = (uint64_t)(gpu / 1000);
    u.cpu_ms = (uint64_t)(cpu / 1000);
    return u;
}

/* By day: each day is what a span of it alone would be, and together they are all. */
static void compare_days(struct storing *t, const struct world *w, const struct store_span *whole,
                         uint64_t gpu_ms)
{
    struct store_span span = *whole;
    struct store_usages got;
    struct err e = { 0 };
    uint64_t sum_ms = 0;
    span.by = (1u << USAGE_BY_COUNT) - 1;
    CHECK(store_usage(t->store, &storing_all, &span, &t->arena, &got, &e) == 0);
    for (size_t k = 0; k < got.n; k++) {
        int64_t day_ms = got.v[k].day * INT64_C(86400000);
        struct store_span day = { MAX(span.from_ms, day_ms), MIN(span.to_ms, day_ms + 86400000),
                                  w->now_ms, 0 };
        struct store_usage is = count(w, &got.v[k], &day);
        CHECK_AT(k, got.v[k].gpu_ms == is.gpu_ms && got.v[k].runs == is.runs);
        sum_ms += is.gpu_ms;
    }
    CHECK(sum_ms <= gpu_ms && gpu_ms - sum_ms <= got.n); /* each is rounded down */
}

static void compare(struct storing *t, const struct world *w, uint64_t seed)
{
    struct rng r = { seed + 77 };
    for (int i = 0; i < SPANS; i++) {
        int64_t x = moment(&r), y = rng_below(&r, 3) ? moment(&r) : x + length(&r);
        struct store_span span = { MIN(x, y), MAX(x, y), w->now_ms, 0 };
        struct store_usages got;
        struct err e = { 0 };
        uint64_t runs = 0, want = 0, gpu_ms = 0;
        CHECK_AT(seed, store_usage(t->store, &storing_all, &span, &t->arena, &got, &e) == 0);
        for (size_t k = 0; k < got.n; k++) {
            struct store_usage is = count(w, &got.v[k], &span);
            CHECK_AT(seed, got.v[k].gpu_ms == is.gpu_ms && got.v[k].cpu_ms == is.cpu_ms);
            CHECK_AT(seed, got.v[k].runs == is.runs);
            runs += is.runs;
            gpu_ms += is.gpu_ms;
        }
        compare_days(t, w, &span, gpu_ms);
        for (size_t k = 0; k < 3 * 3 * 3; k++) { /* none is left out */
            struct store_usage key = { .tenant = str_of(names[k % 3]),
                                       .user = str_of(names[k / 3 % 3]),
                                       .model = str_of(names[k / 9]) };
            want += count(w, &key, &span).runs;
        }
        CHECK_AT(seed, runs == want);
    }
}

static void write_run(struct store_batch *b, const struct store_run *r)
{
    struct store_run begun = *r;
    begun.ended_ms = 0;
    store_put_run(b, &begun);
    for (int say = 0; say < 2 && r->ended_ms; say++) /* again is harmless */
        store_end_run(b, r->job, r->run, r->ended_ms + say);
}

static void the_sums_of_days_are_those_of_the_runs(void)
{
    for (uint64_t seed = 1; seed <= WORLDS; seed++) {
        AUTO(storing_end) struct storing t;
        struct world w;
        make(&w, seed);
        storing_begin(&t);
        storing_open(&t);
        for (size_t i = 0; i < RUNS; i += 8) {
            struct store_batch *b = store_batch_new(t.store);
            for (size_t k = i; k < MIN(i + 8, (size_t)RUNS); k++)
                write_run(b, &w.run[k]);
            storing_commit(&t, b);
        }
        compare(&t, &w, seed);
    }
}

/* As a version that had no sums wrote it. */
static void write_old(struct storing *t, const struct world *w)
{
    AUTO(buf_free) struct buf text = BUF(1 << 20);
    sqlite3 *db = NULL;
    buf_addz(&text, migrations[0].sql);
    buf_addz(&text, migrations[1].sql);
    for (size_t i = 0; i < RUNS; i++) {
        const struct store_run *r = &w->run[i];
        buf_printf(&text,
                   "INSERT INTO run VALUES (%llu,%u,'%s','%s','n','%s',%llu,%llu,1,%lld,%lld);",
                   (unsigned long long)r->job, r->run, r->tenant.p, r->user.p, r->model.p,
                   (unsigned long long)r->gpu_milli, (unsigned long long)r->cpu_milli,
                   (long long)r->started_ms, (long long)r->ended_ms);
    }
    buf_addz(&text, "PRAGMA application_id = 1314080852; PRAGMA user_version = 2;");
    CHECK(sqlite3_open(t->path, &db) == SQLITE_OK);
    CHECK(sqlite3_exec(db, text.p, NULL, NULL, NULL) == SQLITE_OK);
    CHECK(sqlite3_close(db) == SQLITE_OK);
}

static void an_older_store_gets_the_same_sums(void)
{
    for (uint64_t seed = 1001; seed <= 1000 + WORLDS; seed++) {
        AUTO(storing_end) struct storing t;
        struct world w;
        make(&w, seed);
        storing_begin(&t);
        write_old(&t, &w);
        storing_open(&t);
        compare(&t, &w, seed);
    }
}

static const struct test tests[] = {
    { "the sums of days are those of the runs", the_sums_of_days_are_those_of_the_runs },
    { "an older store gets the same sums", an_older_store_gets_the_same_sums },
};
TEST_CASES(tests)
