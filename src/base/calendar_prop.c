/* Calendars against a walk minute by minute over the C library's clock, on generated calendars.
 *
 * The reference knows nothing of first and last instants: a span or an exception is the stretch from
 * the first to the last minute at which the clock on the wall shows a time of it.
 */
#include "base/calendar.h"

#include <stdio.h>
#include <time.h>

#include "base/date.h"
#include "base/rng.h"
#include "tests/lib/test.h"

#define SEEDS 400
#define DAYS 18
#define MINUTES (DAYS * 1440)
#define MARGIN (2 * 1440) /* at both ends, where the reference does not see all */
#define MINUTE_MS INT64_C(60000)

static const char *const rules[] = {
    "UTC0",
    "CET-1CEST,M3.5.0,M10.5.0/3",
    "EST5EDT,M3.2.0,M11.1.0",
    "IST-1GMT0,M10.5.0,M3.5.0/1",
    "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0",
    "AEST-10AEDT,M10.1.0,M4.1.0/3",
    "CST5CDT,M3.2.0/0,M11.1.0/1",
    "<-01>1<+00>,M3.5.0/0,M10.5.0/1",
    "<-02>2<-01>,M3.5.0/-1,M10.5.0/0",
    "<-04>4<-03>,M9.1.6/24,M4.1.6/24",
    "EET-2EEST,M3.4.4/50,M10.4.4/50",
    "NST3:30NDT,M3.2.0/0:01,M11.1.0/0:01", /* sets back into the day before */
    "XXX0YYY-3,J100/1,J200/3",             /* three hours */
};

struct sight {
    struct calendar c;
    int64_t from_min;       /* the first minute that is looked at, UTC */
    int64_t wall[MINUTES];  /* local minutes since 1970 */
    bool open[MINUTES + 1]; /* what the reference says */
};

/* A minute of the day: mostly near the one at which the clock is changed, else one of a few, so that
 * edges meet. */
static uint32_t any_minute(struct rng *r, int64_t changed_min)
{
    if (!rng_below(r, 3))
        return 60 * rng_below(r, 24);
    int64_t near = changed_min + 5 * (int64_t)rng_below(r, 73) - 180;
    return (uint32_t)(near - 1440 * floor_div(near, 1440));
}

static void make_span(struct calendar *c, struct rng *r, int64_t changed_min)
{
    struct calendar_span s = { .days = (uint8_t)rng_between(r, 1, 127) };
    s.from_min = (uint16_t)any_minute(r, changed_min);
    do {
        s.to_min = (uint16_t)any_minute(r, changed_min);
        s.to_min = s.to_min ? s.to_min : 1440;
    } while (s.to_min == s.from_min);
    c->span[c->spans++] = s;
}

static void make_exception(struct calendar *c, struct rng *r, int64_t changed_min)
{
    struct calendar_exception x = { .open = (uint8_t)rng_below(r, 2) };
    int64_t day = floor_div(changed_min, 1440) + (rng_below(r, 2) ? 0 : rng_below(r, 9)) - 1;
    x.from_min = (uint32_t)day * 1440 + any_minute(r, changed_min);
    x.to_min = x.from_min + 5 * rng_between(r, 1, rng_below(r, 2) ? 36 : 1500);
    c->exception[c->exceptions++] = x;
}

static void make(struct sight *s, uint64_t seed)
{
    struct rng r = { seed };
    struct err e;
    const char *rule = rules[rng_below(&r, ARRAY_LEN(rules))];
    s->c = (struct calendar){ 0 };
    CHECK_AT(seed, tz_parse(str_of(rule), &s->c.zone, &e) == 0);
    setenv("TZ", rule, 1);
    tzset();
    int32_t year = (int32_t)rng_between(&r, 1971, 2198);
    int64_t t = (date_year_days(year) + rng_below(&r, 365)) * DAY_MS;
    t = s->c.zone.dst[0] ? tz_next_change_ms(&s->c.zone, t) : t; /* in the middle of what is seen */
    int64_t changed_min = floor_div(tz_local_ms(&s->c.zone, t - 1), MINUTE_MS) + 1;
    s->from_min = floor_div(t, MINUTE_MS) - MINUTES / 2;
    for (uint32_t n = rng_below(&r, 5); n; n--)
        make_span(&s->c, &r, changed_min);
    for (uint32_t n = rng_below(&r, 6); n; n--)
        make_exception(&s->c, &r, changed_min);
}

static void see_the_wall(struct sight *s)
{
    for (int64_t i = 0; i < MINUTES; i++) {
        time_t t = (time_t)((s->from_min + i) * 60);
        struct tm tm;
        CHECK(localtime_r(&t, &tm) != NULL);
        s->wall[i] = s->from_min + i + tm.tm_gmtoff / 60;
    }
}

/* From the first to the last minute at which the clock shows a time of [from, to). */
static void mark(struct sight *s, int64_t from, int64_t to, bool open)
{
    int64_t first = MINUTES, last = -1;
    int64_t i = MAX(from - s->from_min - 2000, (int64_t)0);
    for (; i < MIN(to - s->from_min + 2000, (int64_t)MINUTES); i++)
        if (s->wall[i] >= from && s->wall[i] < to) {
            first = MIN(first, i);
            last = i;
        }
    for (i = first; i <= last; i++)
        s->open[i] = open;
}

static void walk(struct sight *s)
{
    int64_t day0 = floor_div(s->from_min, 1440) - 2;
    memset(s->open, s->c.spans == 0, sizeof s->open);
    for (uint32_t i = 0; i < s->c.spans; i++)
        for (int64_t day = day0; day < day0 + DAYS + 4; day++) {
            const struct calendar_span *p = &s->c.span[i];
            int64_t to = p->to_min + (p->to_min > p->from_min ? 0 : 1440);
            if (p->days & 1 << (date_weekday(day) + 6) % 7)
                mark(s, day * 1440 + p->from_min, day * 1440 + to, true);
        }
    for (uint32_t i = 0; i < s->c.exceptions; i++)
        mark(s, s->c.exception[i].from_min, s->c.exception[i].to_min, s->c.exception[i].open);
}

/* All edges and many minutes between are asked. */
static uint64_t compare(const struct sight *s, uint64_t seed)
{
    uint64_t changes = 0;
    for (int64_t i = MARGIN; i < MINUTES - MARGIN; i++) {
        int64_t now = (s->from_min + i) * MINUTE_MS;
        if (i % 5 == 0)
            CHECK_AT(seed, calendar_is_open(&s->c, now + 1) == s->open[i]);
        bool edge = s->open[i] != s->open[i - 1];
        changes += edge;
        if (!edge && i % 97)
            continue;
        CHECK_AT(seed, calendar_is_open(&s->c, now) == s->open[i]);
        int64_t next = i;
        while (next < MINUTES - MARGIN && s->open[next] == s->open[i])
            next++;
        int64_t want = (s->from_min + next) * MINUTE_MS, got = calendar_next_change(&s->c, now);
        CHECK_AT(seed, next < MINUTES - MARGIN ? got == want : got >= want);
        CHECK_AT(seed, calendar_closes_ms(&s->c, now) == (s->open[i] ? got : now));
        CHECK_AT(seed, calendar_opens_ms(&s->c, now) == (s->open[i] ? now : got));
    }
    return changes;
}

static void a_calendar_is_what_a_walk_by_the_minute_says(void)
{
    AUTO(free_p) struct sight *s = xmalloc(sizeof *s);
    uint64_t changes = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        make(s, seed);
        see_the_wall(s);
        walk(s);
        changes += compare(s, seed);
    }
    unsetenv("TZ");
    CHECK(changes > 10 * SEEDS); /* the calendars are worth looking at */
}

static void what_is_written_is_read_back(void)
{
    AUTO(free_p) struct sight *s = xmalloc(sizeof *s);
    for (uint64_t seed = 1; seed <= 10 * SEEDS; seed++) {
        AUTO(buf_free) struct buf text = BUF(CALENDAR_TEXT_MAX);
        struct calendar again;
        struct err e;
        make(s, seed);
        calendar_format(&s->c, &text);
        CHECK_AT(seed, calendar_parse(buf_str(&text), NULL, NULL, &again, &e) == 0);
        CHECK_AT(seed, calendar_equal(&s->c, &again));
    }
    unsetenv("TZ");
}

static const struct test tests[] = {
    { "a calendar is what a walk by the minute over the C library's clock says",
      a_calendar_is_what_a_walk_by_the_minute_says },
    { "what is written is read back", what_is_written_is_read_back },
};
TEST_CASES(tests)
