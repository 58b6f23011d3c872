#include "store/kept.h"

#include "tests/lib/storing.h"

#define DAY_MS INT64_C(86400000)

static void end_job(struct store_batch *b, uint64_t id, int64_t t_ms, uint32_t run)
{
    struct store_job_now now = {
        .state = JOB_SUCCEEDED, .state_ms = t_ms, .ended_ms = t_ms, .run = run
    };
    store_set_job(b, id, &now);
}

/* Ended at 1,000, 2,000 …; every one ran once. */
static void add_ended(struct storing *t, uint64_t first, uint64_t n)
{
    struct store_batch *b = store_batch_new(t->store);
    for (uint64_t id = first; id < first + n; id++) {
        struct store_job j = storing_job(id, "vision", "ana", "train", JOB_RUNNING);
        storing_add(b, &j);
        end_job(b, id, (int64_t)id * 1000, 1);
    }
    storing_commit(t, b);
}

static struct store_kepts kept(struct storing *t, struct store_walk at, int64_t before_ms)
{
    struct store_kepts k = { 0 };
    struct err e = { 0 };
    struct store_kept_query which = { at, before_ms, 10, STR("") };
    CHECK(store_logs_kept(t->store, &which, &t->arena, &k, &e) == 0);
    return k;
}

static struct store_log_sum sum(struct storing *t)
{
    struct store_log_sum s = { 0 };
    struct err e = { 0 };
    CHECK(store_log_sum(t->store, &s, &e) == 0);
    return s;
}

static bool is_there(struct storing *t, uint64_t job)
{
    struct store_job j;
    struct err e;
    return store_job_get(t->store, &storing_all, job, &t->arena, &j, &e) == 0;
}

static void a_log_is_kept_from_the_end_of_a_job_that_ran(void)
{
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    storing_open(&t);
    struct err e = { 0 };
    struct store_log log;
    struct store_kepts k;
    struct store_batch *b = store_batch_new(t.store);
    for (uint64_t id = 1; id <= 3; id++) {
        struct store_job j = storing_job(id, "vision", "ana", "train", JOB_QUEUED);
        j.fixed.replicas = 2;
        storing_add(b, &j);
    }
    end_job(b, 1, 1000, 3);
    end_job(b, 2, 2000, 0); /* cancelled before it ran */
    storing_commit(&t, b);
    CHECK(store_logs_unmeasured(t.store, 10, &t.arena, &k, &e) == 0);
    CHECK(k.n == 1 && k.v[0].job == 1 && k.v[0].runs == 3 && k.v[0].replicas == 2);
    CHECK(sum(&t).logs == 1 && sum(&t).bytes == 0);
    CHECK(store_log_get(t.store, 1, &log, &e) == 0 && !log.measured && log.removed_ms == 0);
    CHECK(store_log_get(t.store, 2, &log, &e) < 0 && e.code == ERR_NOT_FOUND);
    CHECK(store_log_get(t.store, 3, &log, &e) < 0); /* it lives */
    b = store_batch_new(t.store);
    store_size_log(b, 1, 4096);
    storing_commit(&t, b);
    CHECK(store_logs_unmeasured(t.store, 10, &t.arena, &k, &e) == 0 && k.n == 0);
    CHECK(sum(&t).bytes == 4096);
    b = store_batch_new(t.store);
    store_remove_log(b, 1, 9000, LOG_ROOM);
    store_remove_log(b, 1, 9999, LOG_AGE); /* again is harmless */
    store_size_log(b, 1, 77);
    storing_commit(&t, b);
    CHECK(store_log_get(t.store, 1, &log, &e) == 0);
    CHECK(log.removed_ms == 9000 && log.why == LOG_ROOM && log.bytes == 0);
    CHECK(sum(&t).logs == 0 && sum(&t).bytes == 0);
}

static void logs_are_walked_from_the_oldest_end(void)
{
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    storing_open(&t);
    add_ended(&t, 1, 15);
    struct store_kepts k = kept(&t, (struct store_walk){ 0 }, INT64_MAX);
    CHECK(k.n == 10 && k.v[0].job == 1 && k.v[9].job == 10);
    k = kept(&t, (struct store_walk){ k.v[9].ended_ms, k.v[9].job }, INT64_MAX);
    CHECK(k.n == 5 && k.v[0].job == 11 && k.v[4].ended_ms == 15000);
    CHECK(kept(&t, (struct store_walk){ 0 }, 3000).n == 2);
}

static void only_what_has_ended_and_has_no_log_can_be_removed(void)
{
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    storing_open(&t);
    add_ended(&t, 1, 3);
    struct store_batch *b = store_batch_new(t.store);
    struct store_job living = storing_job(4, "vision", "ana", "train", JOB_QUEUED);
    storing_add(b, &living);
    store_remove_log(b, 1, 5000, LOG_JOB);
    store_remove_job(b, 1);
    store_remove_job(b, 2); /* its log is there */
    store_remove_job(b, 4); /* it lives */
    storing_commit(&t, b);
    CHECK(!is_there(&t, 1) && is_there(&t, 2) && is_there(&t, 3) && is_there(&t, 4));
    uint64_t n[JOB_STATE_COUNT];
    struct err e = { 0 };
    CHECK(store_jobs_count(t.store, &storing_all, n, &e) == 0);
    CHECK(n[JOB_SUCCEEDED] == 2 && n[JOB_QUEUED] == 1);
}

static void ids_go_on_after_everything_was_removed(void)
{
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    storing_open(&t);
    add_ended(&t, 1, 3);
    struct store_batch *b = store_batch_new(t.store);
    for (uint64_t id = 1; id <= 3; id++) {
        store_remove_log(b, id, 5000, LOG_JOB);
        store_remove_job(b, id);
    }
    storing_commit(&t, b);
    storing_reopen(&t);
    CHECK(!is_there(&t, 2) && is_there(&t, 3));
    CHECK(store_last_job(t.store) == 3);
}

static void an_arrays_first_job_outlives_the_others(void)
{
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    storing_open(&t);
    struct store_batch *b = store_batch_new(t.store);
    for (uint64_t id = 1; id <= 4; id++) {
        struct store_job j = storing_job(id, "vision", "ana", "sweep", JOB_CANCELLED);
        j.fixed.array = id <= 3 ? 1 : 0;
        storing_add(b, &j);
    }
    store_remove_job(b, 1);
    storing_commit(&t, b);
    CHECK(is_there(&t, 1)); /* it has the spec of all three */
    b = store_batch_new(t.store);
    store_remove_job(b, 2);
    store_remove_job(b, 3);
    store_remove_job(b, 1);
    storing_commit(&t, b);
    CHECK(!is_there(&t, 1) && !is_there(&t, 2) && !is_there(&t, 3) && is_there(&t, 4));
}

static void usage_outlives_the_runs_in_whole_days(void)
{
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    storing_open(&t);
    add_ended(&t, 1, 2);
    struct store_run r = { .job = 1,
                           .run = 1,
                           .tenant = STR("vision"),
                           .user = STR("ana"),
                           .model = STR("A100"),
                           .gpu_milli = 1000,
                           .started_ms = DAY_MS / 2,
                           .ended_ms = 5 * DAY_MS / 2 };
    struct store_span cut = { DAY_MS, 2 * DAY_MS + 1000, 9 * DAY_MS, 0 };
    struct store_usages u;
    struct err e = { 0 };
    struct store_batch *b = store_batch_new(t.store);
    store_put_run(b, &r);
    storing_commit(&t, b);
    CHECK(store_usage(t.store, &storing_all, &cut, &t.arena, &u, &e) == 0);
    CHECK(u.n == 1 && u.v[0].gpu_ms == DAY_MS + 1000 && u.v[0].runs == 1);
    b = store_batch_new(t.store);
    store_usage_whole_days(b, 3 * DAY_MS);
    store_remove_log(b, 1, 5000, LOG_JOB);
    store_remove_job(b, 1);
    store_trim(b, &(struct store_trim){ .keep_events = 1, .whole_days_before_ms = 3 * DAY_MS });
    storing_commit(&t, b);
    CHECK(store_usage(t.store, &storing_all, &cut, &t.arena, &u, &e) == 0);
    CHECK(u.n == 1 && u.v[0].gpu_ms == DAY_MS + DAY_MS / 2 && u.v[0].runs == 1);
    struct store_span all = { 0, 9 * DAY_MS, 9 * DAY_MS, 0 };
    CHECK(store_usage(t.store, &storing_all, &all, &t.arena, &u, &e) == 0);
    CHECK(u.n == 1 && u.v[0].gpu_ms == 2 * DAY_MS && u.v[0].runs == 1);
}

static void what_grows_is_trimmed_in_pieces(void)
{
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    storing_open(&t);
    struct store_trim trim = { .keep_events = 100, .answers_before_ms = 4000 };
    struct err e = { 0 };
    bool left = true;
    struct store_batch *b = store_batch_new(t.store);
    for (int i = 0; i < 4500; i++) {
        char key[16];
        snprintf(key, sizeof key, "%d", i);
        store_add_event(b, i, "job", STR("vision"), 1, STR("{}"));
        store_add_journal(b, i, STR("x"));
        store_put_answer(b, STR("ana"), str_of(key), i, STR("{}"));
    }
    store_new_segment(b, 5000, 0);
    store_add_journal(b, 5000, STR("y"));
    storing_commit(&t, b);
    int pieces = 0;
    for (; pieces < 9; pieces++) {
        CHECK(store_trim_left(t.store, &trim, &left, &e) == 0);
        if (!left)
            break;
        b = store_batch_new(t.store);
        store_trim(b, &trim);
        storing_commit(&t, b);
    }
    CHECK_INT(pieces, 3);
    struct store_after after = { .limit = 1 };
    struct store_events ev;
    CHECK(store_events_after(t.store, &storing_all, &after, &t.arena, &ev, &e) == 0);
    CHECK(ev.n == 1 && ev.v[0].number == 4401 && store_last_event(t.store) == 4500);
    struct str body;
    CHECK(store_answer(t.store, STR("ana"), STR("3999"), &t.arena, &body, &e) < 0);
    CHECK(store_answer(t.store, STR("ana"), STR("4000"), &t.arena, &body, &e) == 0);
    CHECK(store_journal_lines(t.store) == 1);
}

static const struct test tests[] = {
    { "a log is kept from the end of a job that ran",
      a_log_is_kept_from_the_end_of_a_job_that_ran },
    { "logs are walked from the oldest end", logs_are_walked_from_the_oldest_end },
    { "only what has ended and has no log can be removed",
      only_what_has_ended_and_has_no_log_can_be_removed },
    { "ids go on after everything was removed", ids_go_on_after_everything_was_removed },
    { "an array's first job outlives the others", an_arrays_first_job_outlives_the_others },
    { "usage outlives the runs, in whole days", usage_outlives_the_runs_in_whole_days },
    { "what grows is trimmed in pieces", what_grows_is_trimmed_in_pieces },
};
TEST_CASES(tests)
