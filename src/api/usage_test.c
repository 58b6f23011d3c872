/* What was used, whose the GPUs were, and what tenants have: as far as one may see it, as JSON and as a table. */
#include "tests/lib/asking.h"

#define HOUR INT64_C(3600000)
#define DAY (24 * HOUR)
#define RUNS(tenant, gpus)                                                                         \
    "{'command':['sleep','3600'],'tenant':'" tenant "','resources':{'gpus':" #gpus                 \
    ",'cpus':1,'mem':'1Gi'}}"

/* At 23:00 UTC; vision has a job of two GPUs for an hour, speech one of one GPU for an hour. */
static void begin_with(struct asking *k, const struct asking_site *site)
{
    asking_begin(k, site);
    asking_tenant(k, "vision", NULL);
    asking_tenant(k, "speech", NULL);
    asking_person(k, "ana", "vision", "member");
    asking_person(k, "eve", "speech", "member");
    asking_wait(k, 2800000 - k->t.now_ms % HOUR);
    asking_submit(k, "ana", RUNS("vision", 2));
    asking_submit(k, "eve", RUNS("speech", 1));
    asking_wait(k, 2 * HOUR);
}

static void begin(struct asking *k)
{
    begin_with(k, NULL);
}

static double hours(struct answer *a, const char *path)
{
    double d = -1;
    struct err e;
    const struct json *v = at(a, path);
    if (!v || json_as_f64(v, -1e9, 1e9, &d, &e) < 0)
        test_fail(__FILE__, __LINE__, "no %s in %s", path, a->text);
    return d;
}

static void hours_are_summed_by_what_is_asked_for(void)
{
    struct asking k;
    begin(&k);
    struct answer *a = CHECK_STATUS(ask(&k, "root", "GET /v1/usage"), 200);
    CHECK_INT(at_len(a, "rows"), 2);
    a = ask(&k, "root", "GET /v1/usage?group=tenant");
    CHECK_INT(at_len(a, "rows"), 2);
    double sum = hours(a, "rows.0.gpu_hours") + hours(a, "rows.1.gpu_hours");
    CHECK(sum > 2.999 && sum < 3.001);
    a = ask(&k, "root", "GET /v1/usage?group=model");
    CHECK_INT(at_len(a, "rows"), 1);
    CHECK_STR(at_str(a, "rows.0.model"), "A100");
    a = ask(&k, "root", "GET /v1/usage?group=day,user");
    CHECK(at_len(a, "rows") >= 2);
    asking_end(&k);
}

static void what_lies_outside_the_time_does_not_count(void)
{
    struct asking k;
    begin(&k);
    struct answer *a =
        ask(&k, "root", say(&k, "GET /v1/usage?from_ms=%lld", (long long)k.t.now_ms));
    CHECK_INT(at_len(CHECK_STATUS(a, 200), "rows"), 0);
    a = ask(
        &k, "root",
        say(&k, "GET /v1/usage?group=tenant&to_ms=%lld", (long long)(k.t.now_ms - 3 * HOUR / 2)));
    CHECK(hours(a, "rows.0.gpu_hours") + hours(a, "rows.1.gpu_hours") < 2);
    CHECK_REFUSED(ask(&k, "root", "GET /v1/usage?from_ms=5&to_ms=4"), 409, "conflict", "*",
                  "lies before 'from_ms'");
    CHECK_REFUSED(ask(&k, "root", "GET /v1/fairness?from_ms=5&to_ms=4"), 409, "conflict", "*",
                  "lies before 'from_ms'");
    asking_end(&k);
}

static void members_see_their_tenants_and_nothing_of_the_others(void)
{
    static const char *const calls[] = { "GET /v1/usage",
                                         "GET /v1/fairness",
                                         "GET /v1/quota",
                                         "GET /v1/usage?format=csv",
                                         "GET /v1/fairness?format=csv",
                                         "GET /v1/fairness?by=day" };
    struct asking k;
    begin(&k);
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        struct answer *a = CHECK_STATUS(ask(&k, "ana", calls[i]), 200);
        CHECK_HAS(a->text, "vision");
        if (strstr(a->text, "speech") || strstr(a->text, "eve"))
            test_fail(__FILE__, __LINE__, "%s: %s", calls[i], a->text);
        CHECK_HAS(ask(&k, "root", calls[i])->text, "speech");
    }
    asking_end(&k);
}

static void a_table_has_the_same_rows_and_no_cell_is_a_formula(void)
{
    struct control_tenant_def odd = { .name = STR("=cmd"), .spec = tenant_default() };
    struct asking k;
    begin_with(&k, &(struct asking_site){ .tenant = &odd, .tenants = 1 });
    asking_submit(&k, "root", RUNS("=cmd", 1));
    asking_wait(&k, 2 * HOUR);
    struct answer *a = ask(&k, "root", "GET /v1/usage?format=csv&group=tenant");
    CHECK_STR(a->type, "text/csv; charset=utf-8");
    CHECK(strncmp(a->text, "tenant,gpu_hours,cpu_hours,runs\r\n", 33) == 0);
    CHECK_HAS(a->text, "'=cmd,");
    CHECK(!strstr(a->text, "\n=") && !strstr(a->text, "\n+") && !strstr(a->text, "\n@"));
    struct question q = { .who = "root",
                          .request = "GET /v1/usage",
                          .header = { { "Accept", "text/csv" } } };
    CHECK_STR(ask_so(&k, &q)->type, "text/csv; charset=utf-8");
    q.header[0].value = "*/*";
    CHECK_STR(ask_so(&k, &q)->type, "application/json");
    q.request = "GET /v1/usage?format=json";
    q.header[0].value = "text/csv";
    CHECK_STR(ask_so(&k, &q)->type, "application/json");
    asking_end(&k);
}

static void every_gpu_hour_is_somebodys_or_idle(void)
{
    struct asking k;
    begin(&k);
    asking_again(&k);
    struct answer *a = CHECK_STATUS(ask(&k, "root", "GET /v1/fairness"), 200);
    CHECK_INT(at_len(a, "tenants"), 2);
    double got = 0;
    for (size_t i = 0; i < at_len(a, "tenants"); i++)
        got += hours(a, say(&k, "tenants.%zu.got_gpu_hours", i));
    CHECK(got > 2.999 && got < 3.001);
    double all = 4.0 * (double)(k.t.now_ms - INT64_C(1700000000000)) / (double)HOUR;
    double sum =
        got + hours(a, "machines.0.idle_gpu_hours") + hours(a, "machines.0.away_gpu_hours");
    CHECK(sum > all - 0.01 && sum < all + 0.01);
    CHECK(at_len(ask(&k, "root", "GET /v1/fairness?by=day"), "machines") >=
          2); /* a midnight lies between */
    asking_end(&k);
}

static void what_is_wrong_is_refused_by_its_name(void)
{
    static const struct bad rows[] = {
        { "GET /v1/usage?group=colour", NULL, 400, "group", "group" },
        { "GET /v1/usage?group=", NULL, 400, "group", "group" },
        { "GET /v1/usage?format=xml", NULL, 400, "format", "format" },
        { "GET /v1/fairness?by=hour", NULL, 400, "by", "by" },
        { "GET /v1/fairness?format=xml", NULL, 400, "format", "format" },
        { "GET /v1/fairness?from_ms=x", NULL, 400, "from_ms", "from_ms" },
    };
    struct asking k;
    begin(&k);
    CHECK_BAD(&k, "root", rows);
    asking_end(&k);
}

static void a_budget_is_used_up_and_filled_again(void)
{
    struct asking k;
    begin(&k);
    asking_tenant(&k, "vision", "{'budget':{'gpu_hours':3,'period':'day'}}");
    uint64_t one = asking_submit(
        &k, "ana", "{'command':['sleep','999999'],'resources':{'gpus':2,'cpus':1,'mem':'1Gi'}}");
    CHECK_STR(asking_state(&k, one), "running");
    asking_wait(&k, 3 * HOUR);
    uint64_t two = asking_submit(&k, "ana", RUNS("vision", 1));
    struct answer *a = ask(&k, "ana", say(&k, "GET /v1/jobs/%llu/why", (unsigned long long)two));
    CHECK_STR(at_str(a, "state"), "queued");
    CHECK_HAS(at_str(a, "reasons.0.code"), "budget");
    a = ask(&k, "ana", "GET /v1/quota");
    CHECK_INT((int)hours(a, "tenants.0.budget.gpu_hours"), 3);
    CHECK(hours(a, "tenants.0.budget.used_gpu_hours") >= 3);
    asking_end(&k);
}

static const struct test tests[] = {
    { "hours are summed by what is asked for", hours_are_summed_by_what_is_asked_for },
    { "what lies outside the time does not count", what_lies_outside_the_time_does_not_count },
    { "members see their tenants, and nothing of the others",
      members_see_their_tenants_and_nothing_of_the_others },
    { "a table has the same rows, and none of its cells is a formula",
      a_table_has_the_same_rows_and_no_cell_is_a_formula },
    { "every GPU-hour is somebody's, or idle, also after a crash",
      every_gpu_hour_is_somebodys_or_idle },
    { "what is wrong is refused by its name", what_is_wrong_is_refused_by_its_name },
    { "a budget that is used up keeps jobs waiting, and says so",
      a_budget_is_used_up_and_filled_again },
};
TEST_CASES(tests)
