#include "store/life.h"

#include "base/buf.h"
#include "store/kept.h"
#include "tests/lib/storing.h"

static void add_job(struct storing *t, uint64_t id, const char *tenant)
{
    struct store_batch *b = store_batch_new(t->store);
    struct store_job_fixed f = { .id = id,
                                 .tenant = str_of(tenant),
                                 .user = STR("ana"),
                                 .name = STR("train"),
                                 .submitted_ms = 1,
                                 .replicas = 1,
                                 .spec = STR("{}") };
    struct store_job_now n = { .state = JOB_QUEUED };
    store_add_job(b, &f, &n);
    storing_commit(t, b);
}

static void add_steps(struct storing *t, uint64_t job, uint32_t n)
{
    struct store_batch *b = store_batch_new(t->store);
    for (uint32_t i = 1; i <= n; i++)
        store_add_step(b, &(struct store_step){ .job = job,
                                                .t_ms = i,
                                                .what = i == 1 ? STR("submitted") : STR("waits"),
                                                .state = JOB_QUEUED,
                                                .who = STR("ana") });
    storing_commit(t, b);
}

static void check(struct storing *t, const struct store_scope *who, struct store_life of,
                  const char *want)
{
    AUTO(buf_free) struct buf b = BUF(4096);
    struct store_steps got;
    struct err e = { 0 };
    CHECK(store_job_steps(t->store, who, &of, &t->arena, &got, &e) == 0);
    for (size_t i = 0; i < got.n; i++)
        buf_printf(&b, "%llu:%.*s%s%.*s ", (unsigned long long)got.v[i].number,
                   STR_ARG(got.v[i].what), got.v[i].reason.n ? "/" : "", STR_ARG(got.v[i].reason));
    buf_addz(&b, "");
    CHECK_STR(buf_str(&b).p ? buf_str(&b).p : "", want);
}

static void steps_come_in_order_a_page_at_a_time_to_who_sees_the_job(void)
{
    AUTO(storing_end) struct storing t;
    struct str audio = STR("audio"), vision = STR("vision");
    struct store_scope theirs = { .tenant = &audio, .n = 1 }, ours = { .tenant = &vision, .n = 1 };
    storing_begin(&t);
    storing_open(&t);
    add_job(&t, 1, "vision");
    add_job(&t, 2, "audio");
    add_steps(&t, 1, 4);
    add_steps(&t, 2, 1);
    check(&t, &storing_all, (struct store_life){ .job = 1 },
          "1:submitted 2:waits 3:waits 4:waits ");
    check(&t, &ours, (struct store_life){ 1, 1, 2 }, "2:waits 3:waits ");
    check(&t, &ours, (struct store_life){ 1, 4, 2 }, "");
    check(&t, &theirs, (struct store_life){ .job = 1 }, "");
    check(&t, &theirs, (struct store_life){ .job = 2 }, "1:submitted ");
    check(&t, &storing_all, (struct store_life){ .job = 99 }, "");
}

static void a_reason_is_told_of_the_last_step_once(void)
{
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    storing_open(&t);
    add_job(&t, 1, "vision");
    add_steps(&t, 1, 2);
    struct store_batch *b = store_batch_new(t.store);
    store_step_reason(b, 1, STR("room"));
    store_step_reason(b, 1, STR("budget"));
    storing_commit(&t, b);
    check(&t, &storing_all, (struct store_life){ .job = 1 }, "1:submitted 2:waits/room ");
}

static void the_first_step_and_the_newest_are_kept(void)
{
    AUTO(storing_end) struct storing t;
    struct store_steps got;
    struct err e = { 0 };
    storing_begin(&t);
    storing_open(&t);
    add_job(&t, 1, "vision");
    add_steps(&t, 1, STORE_STEPS_MAX + 50);
    CHECK(store_job_steps(t.store, &storing_all, &(struct store_life){ .job = 1 }, &t.arena, &got,
                          &e) == 0);
    CHECK_INT(got.n, STORE_STEPS_MAX);
    CHECK_INT(got.v[0].number, 1);
    CHECK_INT(got.v[1].number, 52);
    CHECK_INT(got.v[got.n - 1].number, STORE_STEPS_MAX + 50);
}

static void steps_go_with_the_job(void)
{
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    storing_open(&t);
    add_job(&t, 1, "vision");
    add_job(&t, 2, "vision");
    add_steps(&t, 1, 3);
    add_steps(&t, 2, 3);
    struct store_batch *b = store_batch_new(t.store);
    struct store_job_now over = { .state = JOB_CANCELLED, .state_ms = 9 };
    store_set_job(b, 1, &over);
    store_remove_job(b, 1);
    storing_commit(&t, b);
    add_job(&t, 1, "vision"); /* none of what is asked for is hidden behind the row alone */
    check(&t, &storing_all, (struct store_life){ .job = 1 }, "");
    check(&t, &storing_all, (struct store_life){ 2, 2, 5 }, "3:waits ");
}

static void places_are_those_of_the_newest_runs(void)
{
    AUTO(storing_end) struct storing t;
    struct store_places got;
    struct store_life two = { .job = 1, .limit = 2 };
    struct err e = { 0 };
    storing_begin(&t);
    storing_open(&t);
    add_job(&t, 1, "vision");
    struct store_batch *b = store_batch_new(t.store);
    for (uint32_t run = 1; run <= 3; run++) {
        store_add_step(b, &(struct store_step){ .job = 1,
                                                .t_ms = run * 10,
                                                .what = STR("placed"),
                                                .state = JOB_STARTING,
                                                .run = run,
                                                .where = STR("[{\"node\":\"desk1\"}]") });
        store_put_run(b, &(struct store_run){ .job = 1,
                                              .run = run,
                                              .tenant = STR("vision"),
                                              .user = STR("ana"),
                                              .node = STR("desk1"),
                                              .model = STR("x"),
                                              .started_ms = run * 10,
                                              .ended_ms = run < 3 ? run * 10 + 5 : 0 });
    }
    storing_commit(&t, b);
    CHECK(store_job_places(t.store, &storing_all, &two, &t.arena, &got, &e) == 0);
    CHECK_INT(got.n, 2);
    CHECK(got.v[0].run == 3 && got.v[0].from_ms == 30 && got.v[0].to_ms == 0);
    CHECK(got.v[1].run == 2 && got.v[1].from_ms == 20 && got.v[1].to_ms == 25);
    CHECK(str_is(got.v[1].where, "[{\"node\":\"desk1\"}]"));
    struct store_scope nobody = { 0 };
    CHECK(store_job_places(t.store, &nobody, &two, &t.arena, &got, &e) == 0 && got.n == 0);
}

static const struct test tests[] = {
    { "steps come in order, a page at a time, to who sees the job",
      steps_come_in_order_a_page_at_a_time_to_who_sees_the_job },
    { "a reason is told of the last step, once", a_reason_is_told_of_the_last_step_once },
    { "the first step and the newest are kept", the_first_step_and_the_newest_are_kept },
    { "steps go with the job", steps_go_with_the_job },
    { "places are those of the newest runs", places_are_those_of_the_newest_runs },
};
TEST_CASES(tests)
