/* Time zones against the C library's, which reads the same rules from TZ. */
#include "base/tz.h"

#include <stdio.h>
#include <time.h>

#include "base/date.h"
#include "base/rng.h"
#include "tests/lib/test.h"

#define YEAR_LAST 2100

static const char *const rules[] = {
    "UTC0",
    "CET-1CEST,M3.5.0,M10.5.0/3",                   /* Berlin */
    "GMT0BST,M3.5.0/1,M10.5.0",                     /* London */
    "IST-1GMT0,M10.5.0,M3.5.0/1",                   /* Dublin: winter is the exception */
    "EST5EDT,M3.2.0,M11.1.0",                       /* New York */
    "CST5CDT,M3.2.0/0,M11.1.0/1",                   /* Havana: at midnight */
    "<-01>1<+00>,M3.5.0/0,M10.5.0/1",               /* the Azores */
    "<-02>2<-01>,M3.5.0/-1,M10.5.0/0",              /* Nuuk: the day before */
    "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0",         /* Lord Howe: half an hour */
    "AEST-10AEDT,M10.1.0,M4.1.0/3",                 /* Sydney */
    "<-04>4<-03>,M9.1.6/24,M4.1.6/24",              /* Santiago */
    "<+1245>-12:45<+1345>,M9.5.0/2:45,M4.1.0/3:45", /* Chatham */
    "EET-2EEST,M3.4.4/50,M10.4.4/50", /* Gaza's: two days and two hours after a Thursday */
    "IST-2IDT,M3.4.4/26,M10.5.0",     /* Jerusalem */
    "<+0330>-3:30",                   /* Tehran */
    "XXX3YYY,J60/0,J300/0",
    "XXX-3YYY,59,299/5",
};

static struct tz use(const char *rule)
{
    struct tz z;
    struct err e;
    CHECK(tz_parse(str_of(rule), &z, &e) == 0);
    setenv("TZ", rule, 1);
    tzset();
    return z;
}

static int64_t libc_local_ms(int64_t utc_ms)
{
    time_t t = (time_t)(utc_ms / 1000);
    struct tm tm;
    CHECK(localtime_r(&t, &tm) != NULL);
    return utc_ms + tm.tm_gmtoff * 1000;
}

static void check_at(const struct tz *z, const char *rule, int64_t utc_ms)
{
    if (tz_local_ms(z, utc_ms) != libc_local_ms(utc_ms))
        test_fail(__FILE__, __LINE__, "%s at %lld", rule, (long long)utc_ms);
}

static void the_clock_shows_what_the_c_librarys_shows(void)
{
    int64_t last_ms = date_year_days(YEAR_LAST + 1) * DAY_MS;
    for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
        struct tz z = use(rules[i]);
        uint64_t changes = 0;
        for (int64_t t = 0; t < last_ms; t += DAY_MS / 2 + 1000)
            check_at(&z, rules[i], t);
        for (int64_t t = tz_next_change_ms(&z, 0); t < last_ms; t = tz_next_change_ms(&z, t)) {
            changes++;
            for (int64_t near = -7200000; near <= 7200000; near += 900000) {
                check_at(&z, rules[i], t + near);
                check_at(&z, rules[i], t + near - 1000);
            }
        }
        CHECK_INT(changes, z.dst[0] ? 2 * (YEAR_LAST - 1970 + 1) : 0);
    }
    unsetenv("TZ");
}

/* By the definition, minute by minute: when the C library's clock first shows it or more, and when
 * it shows less for the last time. */
static void check_back(const struct tz *z, uint64_t seed, int64_t local_ms)
{
    int64_t first = INT64_MAX, last = INT64_MIN;
    int64_t about = tz_first_ms(z, local_ms);
    for (int64_t t = about - 4 * 3600000; t <= about + 4 * 3600000; t += 60000) {
        bool reached = libc_local_ms(t) >= local_ms;
        first = reached ? MIN(first, t) : first;
        last = reached ? last : t + 60000;
    }
    CHECK_AT(seed, tz_first_ms(z, local_ms) == first);
    CHECK_AT(seed, tz_last_ms(z, local_ms) == last);
}

static void local_times_come_back(void)
{
    for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
        struct tz z = use(rules[i]);
        for (uint64_t seed = 1; seed <= 60; seed++) {
            struct rng r = { seed };
            int32_t year = (int32_t)rng_between(&r, 1970, YEAR_LAST);
            int64_t t = date_year_days(year) * DAY_MS + rng_below(&r, 365 * 1440) * 60000LL;
            int64_t change = z.dst[0] ? tz_next_change_ms(&z, t) : t;
            int64_t near = (int64_t)rng_below(&r, 300) * 60000 - 150 * 60000;
            check_back(&z, seed, tz_local_ms(&z, t));
            check_back(&z, seed, tz_local_ms(&z, change) + near);
            check_back(&z, seed, tz_local_ms(&z, change - 60000) + near);
        }
    }
    unsetenv("TZ");
}

/* Where a local time is shown exactly once, mktime has no choice either. */
static void mktime_agrees_where_it_has_no_choice(void)
{
    uint64_t once = 0, other = 0;
    for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
        struct tz z = use(rules[i]);
        for (uint64_t seed = 1; seed <= 3000; seed++) {
            struct rng r = { seed };
            int64_t local = (int64_t)rng_below(&r, 131 * 365 * 1440) * 60000 + DAY_MS;
            int64_t first = tz_first_ms(&z, local), last = tz_last_ms(&z, local);
            if (first != last || tz_local_ms(&z, first) != local) {
                other++;
                continue;
            }
            struct date d = date_of_days(floor_div(local, DAY_MS));
            struct tm tm = { .tm_year = d.year - 1900,
                             .tm_mon = d.month - 1,
                             .tm_mday = d.day,
                             .tm_min = (int)(local % DAY_MS / 60000),
                             .tm_isdst = -1 };
            CHECK_AT(seed, (int64_t)mktime(&tm) * 1000 == first);
            once++;
        }
    }
    CHECK(once > 100 * other);
    unsetenv("TZ");
}

/* Any rule at all, also such as no parliament would pass. */
static struct tz_change any_change(struct rng *r)
{
    struct tz_change c = { .kind = (uint8_t)rng_below(r, 3) };
    c.time_s = (int32_t)rng_below(r, 2 * 168 * 3600 - 1) - 168 * 3600 + 1;
    if (c.kind == TZ_DAY_WEEK) {
        c.month = (uint8_t)rng_between(r, 1, 12);
        c.week = (uint8_t)rng_between(r, 1, 5);
        c.weekday = (uint8_t)rng_below(r, 7);
    } else {
        c.day = (uint16_t)rng_between(r, 1, 365);
    }
    return c;
}

static void any_rule_keeps_the_promises_of_the_header(void)
{
    for (uint64_t seed = 1; seed <= 20000; seed++) {
        struct rng r = { seed };
        struct tz z = { .std = "XXX", .dst = "YYY" }, again;
        AUTO(buf_free) struct buf text = BUF(TZ_TEXT_MAX - 1);
        struct err e;
        z.std_s = (int32_t)rng_below(&r, 180001) - 90000 + 1;
        z.dst_s = (int32_t)rng_below(&r, 179998) - 89998;
        z.std_s = MIN(z.std_s, 89999);
        z.start = any_change(&r);
        z.end = any_change(&r);
        tz_format(&z, &text);
        CHECK_AT(seed, tz_parse(buf_str(&text), &again, &e) == 0);
        CHECK_AT(seed, memcmp(&z, &again, sizeof z) == 0);
        int64_t t = (int64_t)rng_below(&r, UINT32_MAX) * 1000;
        for (int i = 0; i < 3; i++) {
            int64_t local = tz_local_ms(&z, t);
            int64_t first = tz_first_ms(&z, local), last = tz_last_ms(&z, local);
            CHECK_AT(seed, first <= t && first <= last);
            CHECK_AT(seed, tz_local_ms(&z, first - rng_below(&r, 1u << 30)) <= local);
            CHECK_AT(seed, tz_local_ms(&z, last + rng_below(&r, 1u << 30)) >= local);
            CHECK_AT(seed, tz_local_ms(&z, first) >= local && tz_local_ms(&z, first - 1) < local);
            CHECK_AT(seed, tz_local_ms(&z, last - 1) < local && tz_local_ms(&z, last) >= local);
            t = MIN(tz_next_change_ms(&z, t), t + DAY_MS); /* and where it matters */
        }
    }
}

static const struct test tests[] = {
    { "the clock shows what the C library's shows, through every change of 131 years",
      the_clock_shows_what_the_c_librarys_shows },
    { "a local time's first and last instant are those of the definition", local_times_come_back },
    { "mktime agrees where it has no choice", mktime_agrees_where_it_has_no_choice },
    { "any rule keeps the header's promises", any_rule_keeps_the_promises_of_the_header },
};
TEST_CASES(tests)
