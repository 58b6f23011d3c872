#include "spec/tenant.h"

#include "base/date.h"
#include "base/tz.h"
#include "tests/lib/test.h"

#define HOUR_MS INT64_C(3600000)

static int read_over(const char *text, const struct tenant_spec *base, struct arena *a,
                     struct tenant_spec *out, const char **field, struct err *e)
{
    AUTO(json_free_p) struct json_doc *d = json_read(str_of(text), e);
    CHECK(d);
    return tenant_read(&(struct tenant_text){ json_root(d), base, NULL }, a, out, field, e);
}

static const char *written(const struct tenant_spec *t, struct arena *a)
{
    AUTO(buf_free) struct buf b = BUF(TENANT_TEXT_MAX);
    struct json_out w = { .b = &b };
    json_begin(&w, NULL, '{');
    tenant_write(t, &w);
    json_end(&w, '}');
    return arena_printf(a, "%s", b.p);
}

static struct tenant_spec read_new(const char *text, struct arena *a)
{
    struct tenant_spec base = tenant_default(), t = base;
    struct err e = { 0 };
    if (read_over(text, &base, a, &t, NULL, &e) < 0)
        test_fail(__FILE__, __LINE__, "%s: %s", text, e.msg);
    return t;
}

/* Every field: as it is written, and its default, which is not. */
static const char *const rows[][2] = {
    { "{\"help\":\"the vision group\"}", "help" },
    { "{\"parent\":\"physics\"}", "parent" },
    { "{\"weight\":2.500}", "weight" },
    { "{\"guarantee\":4.000}", "guarantee" },
    { "{\"limit\":{\"gpus\":8.000,\"cpus\":0.500,\"memory\":\"512Gi\",\"jobs\":100,\"notebooks\":3,"
      "\"storage\":\"2Ti\",\"gpus_by_model\":{\"H100\":2.000,\"A100|V100\":0.000}}}",
      "limit" },
    { "{\"user_limit\":{\"gpus\":0.000,\"jobs\":0}}", "user_limit" },
    { "{\"budget\":{\"gpu_hours\":1000.500,\"period\":\"quarter\"}}", "budget" },
    { "{\"pools\":[\"desks\",\"-\"]}", "pools" },
    { "{\"pools\":[]}", "pools" },
    { "{\"profiles\":[\"small\"]}", "profiles" },
    { "{\"priority\":\"low\"}", "priority" },
    { "{\"stage\":\"beta\"}", "stage" },
    { "{\"expires\":\"2027-02-28\"}", "expires" },
    { "{\"expires\":\"2027-02-28T12:30:00Z\"}", "expires" },
    { "{\"groups\":{\"ml-students\":\"member\",\"cn=staff,dc=x\":\"lead\"}}", "groups" },
};

static void what_is_read_is_written_and_read_again(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct tenant_spec t = read_new(rows[i][0], &a);
        CHECK_STR(written(&t, &a), rows[i][0]);
        t = read_new(written(&t, &a), &a);
        CHECK_STR(written(&t, &a), rows[i][0]);
    }
    struct tenant_spec plain = tenant_default();
    CHECK_STR(written(&plain, &a), "{}");
}

static void null_makes_a_field_the_default_again_and_others_stay(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct err e;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct tenant_spec t = read_new(rows[i][0], &a), after;
        bool is_help = strcmp(rows[i][1], "help") == 0;
        t.help = is_help ? t.help : STR("kept");
        CHECK(read_over(arena_printf(&a, "{\"%s\":null}", rows[i][1]), &t, &a, &after, NULL, &e) ==
              0);
        CHECK_STR(written(&after, &a), is_help ? "{}" : "{\"help\":\"kept\"}");
        CHECK(read_over("{}", &t, &a, &after, NULL, &e) == 0);
        CHECK_STR(written(&after, &a), written(&t, &a));
    }
}

static void limits_models_and_groups_are_changed_one_by_one(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct tenant_spec t = read_new("{\"limit\":{\"gpus\":8,\"jobs\":5,\"gpus_by_model\":"
                                    "{\"H100\":2,\"A100\":4}},\"groups\":{\"a\":\"member\"}}",
                                    &a),
                       after;
    struct err e;
    CHECK(read_over("{\"limit\":{\"jobs\":null,\"cpus\":1,\"gpus_by_model\":{\"H100\":null,"
                    "\"A100\":3,\"T4\":1}},\"groups\":{\"b\":\"lead\",\"a\":null}}",
                    &t, &a, &after, NULL, &e) == 0);
    CHECK_STR(written(&after, &a),
              "{\"limit\":{\"gpus\":8.000,\"cpus\":1.000,\"gpus_by_model\":{\"A100\":3.000,"
              "\"T4\":1.000}},\"groups\":{\"b\":\"lead\"}}");
    CHECK(t.groups == 1 && str_is(t.group[0].group, "a") && t.limit.models == 2);
    CHECK(read_over("{\"limit\":{\"gpus_by_model\":null}}", &after, &a, &after, NULL, &e) == 0);
    CHECK(after.limit.models == 0 && after.limit.of.of[RES_GPU] == 8000);
}

static void what_is_wrong_is_refused_by_its_field_with_a_hint(void)
{
    static const char *const bad[][2] = {
        { "{\"help\":5}", "help" },
        { "{\"parent\":[]}", "parent" },
        { "{\"weight\":0}", "weight" },
        { "{\"weight\":-1}", "weight" },
        { "{\"weight\":\"2\"}", "weight" },
        { "{\"weight\":1e9}", "weight" },
        { "{\"guarantee\":-1}", "guarantee" },
        { "{\"limit\":5}", "limit" },
        { "{\"limit\":{\"gpu\":5}}", "limit" },
        { "{\"limit\":{\"gpus\":-1}}", "limit" },
        { "{\"limit\":{\"memory\":512}}", "limit" },
        { "{\"limit\":{\"memory\":\"much\"}}", "limit" },
        { "{\"limit\":{\"jobs\":1.5}}", "limit" },
        { "{\"limit\":{\"gpus_by_model\":[]}}", "limit" },
        { "{\"limit\":{\"gpus_by_model\":{\"\":1}}}", "limit" },
        { "{\"limit\":{\"gpus_by_model\":{\"a\":1,\"b\":1,\"c\":1,\"d\":1,\"e\":1,\"f\":1,"
          "\"g\":1,\"h\":1,\"i\":1}}}",
          "limit" },
        { "{\"user_limit\":{\"gpus_by_model\":{\"H100\":1}}}", "user_limit" },
        { "{\"budget\":{}}", "budget" },
        { "{\"budget\":{\"gpu_hours\":0}}", "budget" },
        { "{\"budget\":{\"gpu_hours\":1,\"period\":\"fortnight\"}}", "budget" },
        { "{\"pools\":\"desks\"}", "pools" },
        { "{\"pools\":[\"\"]}", "pools" },
        { "{\"pools\":[\"a|b\"]}", "pools" },
        { "{\"profiles\":[5]}", "profiles" },
        { "{\"priority\":\"highest\"}", "priority" },
        { "{\"stage\":\"gamma\"}", "stage" },
        { "{\"expires\":\"2027-02-29\"}", "expires" },
        { "{\"expires\":\"soon\"}", "expires" },
        { "{\"expires\":\"1969-12-31\"}", "expires" },
        { "{\"expires\":\"9999-12-31\"}", "expires" },
        { "{\"groups\":[\"a\"]}", "groups" },
        { "{\"groups\":{\"a\":\"owner\"}}", "groups" },
        { "{\"groups\":{\"\":\"lead\"}}", "groups" },
        { "{\"no_such_field\":2}", "no_such_field" },
        { "{\"weight\":1,\"weight\":2}", "weight" },
    };
    AUTO(arena_free) struct arena a = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct tenant_spec base = tenant_default(), out = { .help = STR("untouched") };
        const char *field = NULL;
        struct err e = { 0 };
        if (read_over(bad[i][0], &base, &a, &out, &field, &e) == 0)
            test_fail(__FILE__, __LINE__, "%s was taken", bad[i][0]);
        CHECK_STR(field, bad[i][1]);
        CHECK(e.code == ERR_INVALID && strstr(e.msg, bad[i][1]) && e.hint[0]);
        CHECK(str_is(out.help, "untouched"));
    }
}

static void a_day_of_expiry_counts_whole(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct tenant_spec t = read_new("{\"expires\":\"2028-02-29\"}", &a);
    CHECK_INT(t.expires_ms, (date_days((struct date){ 2028, 3, 1 })) * DAY_MS);
    CHECK_STR(written(&t, &a), "{\"expires\":\"2028-02-29\"}");
}

/* ---- periods ---- */

static int64_t at(const char *text)
{
    int64_t ms;
    struct err e;
    CHECK(date_parse(str_of(text), &ms, &e) == 0);
    return ms;
}

static void a_period_is_that_of_the_calendar(void)
{
    static const struct {
        const char *zone;
        enum period period;
        const char *now, *from, *until;
    } row[] = {
        { "UTC0", PERIOD_DAY, "2028-02-29T23:59:59Z", "2028-02-29T00:00:00Z",
          "2028-03-01T00:00:00Z" },
        { "UTC0", PERIOD_MONTH, "2028-02-29T12:00:00Z", "2028-02-01T00:00:00Z",
          "2028-03-01T00:00:00Z" },
        { "UTC0", PERIOD_MONTH, "2027-12-31T23:59:59Z", "2027-12-01T00:00:00Z",
          "2028-01-01T00:00:00Z" },
        { "UTC0", PERIOD_QUARTER, "2028-03-31T23:59:59Z", "2028-01-01T00:00:00Z",
          "2028-04-01T00:00:00Z" },
        { "UTC0", PERIOD_QUARTER, "2028-04-01T00:00:00Z", "2028-04-01T00:00:00Z",
          "2028-07-01T00:00:00Z" },
        { "UTC0", PERIOD_YEAR, "2028-12-31T23:59:59Z", "2028-01-01T00:00:00Z",
          "2029-01-01T00:00:00Z" },
        /* weeks begin on Monday: 2026-11-16 is one */
        { "UTC0", PERIOD_WEEK, "2026-11-15T23:59:59Z", "2026-11-09T00:00:00Z",
          "2026-11-16T00:00:00Z" },
        { "UTC0", PERIOD_WEEK, "2026-11-16T00:00:00Z", "2026-11-16T00:00:00Z",
          "2026-11-23T00:00:00Z" },
        /* a year's border inside of a week */
        { "UTC0", PERIOD_WEEK, "2027-01-01T00:00:00Z", "2026-12-28T00:00:00Z",
          "2027-01-04T00:00:00Z" },
        /* by the clock on the wall: days of 23 and 25 hours, months that begin in summer time */
        { "CET-1CEST,M3.5.0,M10.5.0/3", PERIOD_DAY, "2027-03-28T10:00:00Z", "2027-03-27T23:00:00Z",
          "2027-03-28T22:00:00Z" },
        { "CET-1CEST,M3.5.0,M10.5.0/3", PERIOD_DAY, "2027-10-31T10:00:00Z", "2027-10-30T22:00:00Z",
          "2027-10-31T23:00:00Z" },
        { "CET-1CEST,M3.5.0,M10.5.0/3", PERIOD_MONTH, "2027-03-31T21:59:59Z",
          "2027-02-28T23:00:00Z", "2027-03-31T22:00:00Z" },
        { "CET-1CEST,M3.5.0,M10.5.0/3", PERIOD_MONTH, "2027-03-31T22:00:00Z",
          "2027-03-31T22:00:00Z", "2027-04-30T22:00:00Z" },
        { "CET-1CEST,M3.5.0,M10.5.0/3", PERIOD_YEAR, "2026-12-31T23:30:00Z", "2026-12-31T23:00:00Z",
          "2027-12-31T23:00:00Z" },
        { "PST8", PERIOD_WEEK, "2026-11-16T07:59:59Z", "2026-11-09T08:00:00Z",
          "2026-11-16T08:00:00Z" },
    };
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        struct tz zone;
        struct err e;
        int64_t from, until;
        char got[32];
        CHECK(tz_parse(str_of(row[i].zone), &zone, &e) == 0);
        period_around(row[i].period, &zone, 0, at(row[i].now), &from, &until);
        CHECK_STR(date_format(from, got), row[i].from);
        CHECK_STR(date_format(until, got), row[i].until);
    }
}

static void periods_follow_one_another_without_a_gap(void)
{
    struct tz zone;
    struct err e;
    CHECK(tz_parse(STR("CET-1CEST,M3.5.0,M10.5.0/3"), &zone, &e) == 0);
    for (int p = PERIOD_DAY; p < PERIOD_ONCE; p++) {
        int64_t from, until = at("2026-12-31T23:00:00Z"), end = at("2033-01-01T00:00:00Z");
        while (until < end) {
            int64_t begin = until, last;
            period_around((enum period)p, &zone, 0, begin, &from, &until);
            if (p != PERIOD_WEEK) /* the first of these may have begun before */
                CHECK_INT(from, begin);
            CHECK(from <= begin && until > begin);
            period_around((enum period)p, &zone, 0, until - 1, &from, &last);
            CHECK_INT(last, until);
        }
    }
}

static void once_begins_with_the_tenant_and_never_ends(void)
{
    struct tz utc = tz_utc();
    int64_t from, until;
    period_around(PERIOD_ONCE, &utc, 12345, at("2027-01-01T00:00:00Z"), &from, &until);
    CHECK(from == 12345 && until == INT64_MAX);
}

static const struct test tests[] = {
    { "what is read is written, and read again", what_is_read_is_written_and_read_again },
    { "null makes a field the default again, and others stay",
      null_makes_a_field_the_default_again_and_others_stay },
    { "limits, models and groups are changed one by one",
      limits_models_and_groups_are_changed_one_by_one },
    { "what is wrong is refused by its field, with a hint",
      what_is_wrong_is_refused_by_its_field_with_a_hint },
    { "a day of expiry counts whole", a_day_of_expiry_counts_whole },
    { "a period is that of the calendar", a_period_is_that_of_the_calendar },
    { "periods follow one another without a gap", periods_follow_one_another_without_a_gap },
    { "once begins with the tenant and never ends", once_begins_with_the_tenant_and_never_ends },
};
TEST_CASES(tests)
