#include "base/tz.h"

#include <time.h>

#include "tests/lib/test.h"

#define BERLIN "CET-1CEST,M3.5.0,M10.5.0/3"

static struct tz zone(const char *rule)
{
    struct tz z;
    struct err e = { 0 };
    if (tz_parse(str_of(rule), &z, &e) < 0)
        test_fail(__FILE__, __LINE__, "%s: %s", rule, e.msg);
    return z;
}

/* "2026-03-29 01:00:00" of a clock that knows no zone, as ms. */
static int64_t at(const char *text)
{
    struct tm tm = { 0 };
    const char *end = strptime(text, "%Y-%m-%d %H:%M:%S", &tm);
    CHECK(end && !*end);
    return (int64_t)timegm(&tm) * 1000;
}

static void rules_are_read_and_written(void)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        { "UTC0", "UTC0" },
        { "UTC+0", "UTC0" },
        { "UTC-00:00", "UTC0" },
        { "<+0330>-3:30", "<+0330>-3:30" },
        { "<CET>-01:00:00", "CET-1" },
        { "LMT-0:53:28", "LMT-0:53:28" },
        { BERLIN, BERLIN },
        { "CET-1CEST-2,M3.5.0/2,M10.5.0/3:00", BERLIN },
        { "EST5EDT,M3.2.0,M11.1.0", "EST5EDT,M3.2.0,M11.1.0" },
        { "EST5EDT4,M3.2.0/02:00:00,M11.1.0", "EST5EDT,M3.2.0,M11.1.0" },
        { "IST-1GMT0,M10.5.0,M3.5.0/1", "IST-1GMT0,M10.5.0,M3.5.0/1" },
        { "<-03>3<-02>,M3.5.0/-2,M10.5.0/-1", "<-03>3<-02>,M3.5.0/-2,M10.5.0/-1" },
        { "EET-2EEST,J60/167,365/-167:59:59", "EET-2EEST,J60/167,365/-167:59:59" },
        { "<ABCDEFGHIJKLM+1>24:59:59<ABCDEFGHIJKLM-1>-24:59:59,M10.5.0/-167:59:59,M12.5.0/"
          "-167:59:59",
          "<ABCDEFGHIJKLM+1>24:59:59<ABCDEFGHIJKLM-1>-24:59:59,M10.5.0/-167:59:59,M12.5.0/"
          "-167:59:59" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(buf_free) struct buf out = BUF(TZ_TEXT_MAX - 1);
        struct tz z = zone(rows[i].text);
        tz_format(&z, &out);
        CHECK_STR(out.p, rows[i].want);
        struct tz again = zone(out.p);
        CHECK(memcmp(&z, &again, sizeof z) == 0);
    }
}

static void what_is_no_rule_is_refused(void)
{
    static const struct {
        const char *text, *why;
    } rows[] = {
        { "", "begins with a name" },
        { "UT0", "begins with a name" },
        { "<UT0", "begins with a name" },
        { "<UTC0", "begins with a name" },
        { "1", "begins with a name" },
        { "ABCDEFGHIJKLMNOP0", "begins with a name" },
        { ":CET", "begins with a name" },
        { "CET", "hours west" },
        { "CET-25", "hours west" },
        { "CET-1:60", "hours west" },
        { "CET--1", "hours west" },
        { "CET-1x", "name of daylight" },
        { "CET-1 ", "name of daylight" },
        { "CET-1CEST", "is missing" },
        { "CET-1CEST,", "starts and ends" },
        { "CET-1CEST,M3.5.0", "starts and ends" },
        { "CET-1CEST,M0.5.0,M10.5.0", "starts and ends" },
        { "CET-1CEST,M13.5.0,M10.5.0", "starts and ends" },
        { "CET-1CEST,M3.0.0,M10.5.0", "starts and ends" },
        { "CET-1CEST,M3.6.0,M10.5.0", "starts and ends" },
        { "CET-1CEST,M3.5.7,M10.5.0", "starts and ends" },
        { "CET-1CEST,J0,J1", "starts and ends" },
        { "CET-1CEST,J366,J1", "starts and ends" },
        { "CET-1CEST,366,0", "starts and ends" },
        { "CET-1CEST,99999999999,0", "starts and ends" },
        { "CET-1CEST,M3.5.0/168,M10.5.0", "starts and ends" },
        { "CET-1CEST,M3.5.0/,M10.5.0", "starts and ends" },
        { "CET-1CEST-99,M3.5.0,M10.5.0", "daylight time is" },
        { BERLIN ",", "follows after" },
        { BERLIN "/3", "follows after" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct tz z = { .std = "kept" };
        struct err e = { 0 };
        if (tz_parse(str_of(rows[i].text), &z, &e) == 0 || !strstr(e.msg, rows[i].why))
            test_fail(__FILE__, __LINE__, "'%s': %s", rows[i].text, e.msg);
        CHECK(e.code == ERR_INVALID && e.hint[0] && strcmp(z.std, "kept") == 0);
    }
    char long_rule[200];
    struct tz z;
    struct err e;
    memset(long_rule, 'x', sizeof long_rule);
    CHECK(tz_parse((struct str){ long_rule, sizeof long_rule }, &z, &e) < 0);
}

/* Each change by hand: the second before it and the second itself, as the clock shows them. */
static void clocks_change_when_the_law_says(void)
{
    static const struct {
        const char *rule, *utc, *before, *after;
    } rows[] = {
        { BERLIN, "2026-03-29 01:00:00", "2026-03-29 01:59:59", "2026-03-29 03:00:00" },
        { BERLIN, "2026-10-25 01:00:00", "2026-10-25 02:59:59", "2026-10-25 02:00:00" },
        { "EST5EDT,M3.2.0,M11.1.0", "2026-03-08 07:00:00", "2026-03-08 01:59:59",
          "2026-03-08 03:00:00" },
        { "EST5EDT,M3.2.0,M11.1.0", "2026-11-01 06:00:00", "2026-11-01 01:59:59",
          "2026-11-01 01:00:00" },
        { "AEST-10AEDT,M10.1.0,M4.1.0/3", "2026-10-03 16:00:00", "2026-10-04 01:59:59",
          "2026-10-04 03:00:00" },
        { "AEST-10AEDT,M10.1.0,M4.1.0/3", "2026-04-04 16:00:00", "2026-04-05 02:59:59",
          "2026-04-05 02:00:00" },
        { "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", "2026-10-03 15:30:00", "2026-10-04 01:59:59",
          "2026-10-04 02:30:00" },
        { "IST-1GMT0,M10.5.0,M3.5.0/1", "2026-10-25 01:00:00", "2026-10-25 01:59:59",
          "2026-10-25 01:00:00" },
        { "IST-1GMT0,M10.5.0,M3.5.0/1", "2026-03-29 01:00:00", "2026-03-29 00:59:59",
          "2026-03-29 02:00:00" },
        { "<-02>2<-01>,M3.5.0/-1,M10.5.0/0", "2026-03-29 01:00:00", "2026-03-28 22:59:59",
          "2026-03-29 00:00:00" },
        { "EET-2EEST,M3.4.4/50,M10.4.4/50", "2026-03-28 00:00:00", "2026-03-28 01:59:59",
          "2026-03-28 03:00:00" },
        { "XXX0YYY,J60/0,J300/0", "2024-03-01 00:00:00", "2024-02-29 23:59:59",
          "2024-03-01 01:00:00" },
        { "XXX0YYY,J60/0,J300/0", "2026-03-01 00:00:00", "2026-02-28 23:59:59",
          "2026-03-01 01:00:00" },
        { "XXX0YYY,59/0,300/0", "2024-02-29 00:00:00", "2024-02-28 23:59:59",
          "2024-02-29 01:00:00" },
        { "XXX0YYY,59/0,300/0", "2026-03-01 00:00:00", "2026-02-28 23:59:59",
          "2026-03-01 01:00:00" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct tz z = zone(rows[i].rule);
        int64_t t = at(rows[i].utc);
        CHECK_INT(tz_local_ms(&z, t - 1000), at(rows[i].before));
        CHECK_INT(tz_local_ms(&z, t - 1), at(rows[i].before) + 999);
        CHECK_INT(tz_local_ms(&z, t), at(rows[i].after));
        CHECK_INT(tz_next_change_ms(&z, t - 1), t);
        CHECK(tz_next_change_ms(&z, t) > t);
    }
}

static void daylight_time_all_year_is_one_piece(void)
{
    struct tz z = zone("EST5EDT,0/0,J365/25"), fixed = zone("<-04>4");
    for (int64_t t = at("2025-12-30 00:00:00"); t < at("2026-01-03 00:00:00"); t += 60000)
        CHECK_INT(tz_local_ms(&z, t), tz_local_ms(&fixed, t));
    CHECK(tz_next_change_ms(&z, at("2026-06-01 00:00:00")) == INT64_MAX);
    CHECK(tz_next_change_ms(&fixed, 0) == INT64_MAX);
}

static void local_times_have_a_first_and_a_last_instant(void)
{
    static const struct {
        const char *rule, *local, *first, *last;
    } rows[] = {
        { BERLIN, "2026-07-01 12:00:00", "2026-07-01 10:00:00", "2026-07-01 10:00:00" },
        { BERLIN, "2026-12-01 12:00:00", "2026-12-01 11:00:00", "2026-12-01 11:00:00" },
        /* the gap: 02:00 to 03:00 */
        { BERLIN, "2026-03-29 01:59:59", "2026-03-29 00:59:59", "2026-03-29 00:59:59" },
        { BERLIN, "2026-03-29 02:00:00", "2026-03-29 01:00:00", "2026-03-29 01:00:00" },
        { BERLIN, "2026-03-29 02:30:00", "2026-03-29 01:00:00", "2026-03-29 01:00:00" },
        { BERLIN, "2026-03-29 03:00:00", "2026-03-29 01:00:00", "2026-03-29 01:00:00" },
        { BERLIN, "2026-03-29 03:00:01", "2026-03-29 01:00:01", "2026-03-29 01:00:01" },
        /* twice: 02:00 to 03:00; what ends at 02:00 has ended before it is shown again */
        { BERLIN, "2026-10-25 02:00:00", "2026-10-25 00:00:00", "2026-10-25 00:00:00" },
        { BERLIN, "2026-10-25 02:00:01", "2026-10-25 00:00:01", "2026-10-25 01:00:01" },
        { BERLIN, "2026-10-25 02:30:00", "2026-10-25 00:30:00", "2026-10-25 01:30:00" },
        { BERLIN, "2026-10-25 02:59:59", "2026-10-25 00:59:59", "2026-10-25 01:59:59" },
        { BERLIN, "2026-10-25 03:00:00", "2026-10-25 02:00:00", "2026-10-25 02:00:00" },
        { "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", "2026-04-05 01:45:00", "2026-04-04 14:45:00",
          "2026-04-04 15:15:00" },
        { "IST-1GMT0,M10.5.0,M3.5.0/1", "2026-03-29 01:30:00", "2026-03-29 01:00:00",
          "2026-03-29 01:00:00" },
        { "IST-1GMT0,M10.5.0,M3.5.0/1", "2026-10-25 01:30:00", "2026-10-25 00:30:00",
          "2026-10-25 01:30:00" },
        { "<+0330>-3:30", "2026-10-25 01:30:00", "2026-10-24 22:00:00", "2026-10-24 22:00:00" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct tz z = zone(rows[i].rule);
        CHECK_INT(tz_first_ms(&z, at(rows[i].local)), at(rows[i].first));
        CHECK_INT(tz_last_ms(&z, at(rows[i].local)), at(rows[i].last));
    }
}

static const struct test tests[] = {
    { "rules are read, and written as short as they can be", rules_are_read_and_written },
    { "what is no rule is refused, and why is said", what_is_no_rule_is_refused },
    { "clocks change when the law says", clocks_change_when_the_law_says },
    { "daylight time all year is one piece", daylight_time_all_year_is_one_piece },
    { "a local time has a first and a last instant", local_times_have_a_first_and_a_last_instant },
};
TEST_CASES(tests)
