#include "base/tz.h"

#include <stdio.h>

#include "base/date.h"

#define HOUR_S 3600
#define CHANGE_TIME_S (2 * HOUR_S) /* when a rule does not say */
#define OFFSET_HOURS_MAX 24
#define CHANGE_HOURS_MAX 167
#define HINT "write it like UTC0, CET-1CEST,M3.5.0,M10.5.0/3 or <+0330>-3:30"

struct tz tz_utc(void)
{
    return (struct tz){ .std = "UTC" };
}

/* ---- reading a rule; `rest` is what is still unread ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool take_number(struct str *rest, int32_t min, int32_t max, int32_t *out)
{
    int32_t v = 0;
    size_t n = 0;
    for (; n < rest->n && n < 4 && is_digit(rest->p[n]); n++)
        v = v * 10 + (rest->p[n] - '0');
    if (n == 0 || v < min || v > max)
        return false;
    *rest = (struct str){ rest->p + n, rest->n - n };
    *out = v;
    return true;
}

/* [+-]hh[:mm[:ss]] */
static bool take_time(struct str *rest, int32_t hours_max, int32_t *out_s)
{
    bool minus = str_take(rest, '-');
    int32_t h, m = 0, s = 0;
    if (!minus)
        str_take(rest, '+');
    if (!take_number(rest, 0, hours_max, &h))
        return false;
    if (str_take(rest, ':') &&
        (!take_number(rest, 0, 59, &m) || (str_take(rest, ':') && !take_number(rest, 0, 59, &s))))
        return false;
    *out_s = (h * HOUR_S + m * 60 + s) * (minus ? -1 : 1);
    return true;
}

/* Letters, or letters, digits and signs in angle brackets. */
static bool take_name(struct str *rest, char out[static TZ_NAME_MAX + 1])
{
    bool quoted = str_take(rest, '<');
    size_t n = 0;
    while (n < rest->n &&
           (is_letter(rest->p[n]) ||
            (quoted && (is_digit(rest->p[n]) || rest->p[n] == '+' || rest->p[n] == '-'))))
        n++;
    if (n < 3 || n > TZ_NAME_MAX)
        return false;
    memcpy(out, rest->p, n);
    *rest = (struct str){ rest->p + n, rest->n - n };
    return !quoted || str_take(rest, '>');
}

static bool take_week(struct str *rest, struct tz_change *c)
{
    int32_t month, week, weekday;
    if (!take_number(rest, 1, 12, &month) || !str_take(rest, '.') ||
        !take_number(rest, 1, 5, &week) || !str_take(rest, '.') ||
        !take_number(rest, 0, 6, &weekday))
        return false;
    c->month = (uint8_t)month;
    c->week = (uint8_t)week;
    c->weekday = (uint8_t)weekday;
    return true;
}

static bool take_change(struct str *rest, struct tz_change *out)
{
    struct tz_change c = { .time_s = CHANGE_TIME_S, .kind = TZ_DAY_ZERO };
    int32_t day = 0;
    if (!str_take(rest, ','))
        return false;
    if (str_take(rest, 'M')) {
        c.kind = TZ_DAY_WEEK;
        if (!take_week(rest, &c))
            return false;
    } else {
        c.kind = str_take(rest, 'J') ? TZ_DAY_JULIAN : TZ_DAY_ZERO;
        if (!take_number(rest, c.kind == TZ_DAY_JULIAN ? 1 : 0, 365, &day))
            return false;
        c.day = (uint16_t)day;
    }
    if (str_take(rest, '/') && !take_time(rest, CHANGE_HOURS_MAX, &c.time_s))
        return false;
    *out = c;
    return true;
}

static int bad_rule(struct str rule, const char *why, struct err *e)
{
    err_set(e, ERR_INVALID, "'%.*s' is not a time zone's rule: %s",
            (int)MIN(rule.n, (size_t)TZ_TEXT_MAX), rule.p, why);
    return err_hint(e, HINT);
}

int tz_parse(struct str rule, struct tz *out, struct err *e)
{
    struct tz z = { 0 };
    struct str rest = rule;
    int32_t west;
    if (rule.n >= TZ_TEXT_MAX)
        return bad_rule(rule, "it is too long", e);
    if (!take_name(&rest, z.std))
        return bad_rule(rule, "it begins with a name of 3 to 15 letters, or <...> around others",
                        e);
    if (!take_time(&rest, OFFSET_HOURS_MAX, &west))
        return bad_rule(rule, "the first name needs its hours west of Greenwich, 0 to 24", e);
    z.std_s = -west;
    if (rest.n) {
        if (!take_name(&rest, z.dst))
            return bad_rule(rule, "the name of daylight time has 3 to 15 letters", e);
        west -= HOUR_S;
        if (rest.n && rest.p[0] != ',' && !take_time(&rest, OFFSET_HOURS_MAX, &west))
            return bad_rule(rule, "daylight time is 0 to 24 hours west of Greenwich", e);
        z.dst_s = -west;
        if (rest.n == 0)
            return bad_rule(rule, "when daylight time starts and ends is missing", e);
        if (!take_change(&rest, &z.start) || !take_change(&rest, &z.end))
            return bad_rule(rule, "daylight time starts and ends at ,Mm.w.d ,Jn or ,n each", e);
    }
    if (rest.n)
        return bad_rule(rule, "something follows after its end", e);
    *out = z;
    return 0;
}

/* ---- and writing it ---- */

static void add_time(struct buf *out, int32_t s)
{
    int32_t abs = s < 0 ? -s : s;
    buf_printf(out, "%s%d", s < 0 ? "-" : "", abs / HOUR_S);
    if (abs % HOUR_S)
        buf_printf(out, ":%02d", abs / 60 % 60);
    if (abs % 60)
        buf_printf(out, ":%02d", abs % 60);
}

static void add_name(struct buf *out, const char *name)
{
    bool plain = true;
    for (const char *p = name; *p; p++)
        plain = plain && is_letter(*p);
    buf_printf(out, plain ? "%s" : "<%s>", name);
}

static void add_change(struct buf *out, const struct tz_change *c)
{
    if (c->kind == TZ_DAY_WEEK)
        buf_printf(out, ",M%u.%u.%u", c->month, c->week, c->weekday);
    else
        buf_printf(out, ",%s%u", c->kind == TZ_DAY_JULIAN ? "J" : "", c->day);
    if (c->time_s != CHANGE_TIME_S) {
        buf_addc(out, '/');
        add_time(out, c->time_s);
    }
}

void tz_format(const struct tz *z, struct buf *out)
{
    add_name(out, z->std);
    add_time(out, -z->std_s);
    if (!z->dst[0])
        return;
    add_name(out, z->dst);
    if (z->dst_s != z->std_s + HOUR_S)
        add_time(out, -z->dst_s);
    add_change(out, &z->start);
    add_change(out, &z->end);
}

/* ---- from instants to the clock on the wall ---- */

/* When the clock on the wall, `offset_s` ahead of UTC until then, is changed in that year. */
static int64_t change_ms(const struct tz_change *c, int32_t year, int32_t offset_s)
{
    int64_t day;
    if (c->kind == TZ_DAY_WEEK) {
        int64_t first = date_days((struct date){ year, c->month, 1 });
        int from_first = (c->weekday + 7 - date_weekday(first)) % 7 + 7 * (c->week - 1);
        while (from_first >= date_month_days(year, c->month))
            from_first -= 7;
        day = first + from_first;
    } else {
        bool skip = c->kind == TZ_DAY_JULIAN && date_is_leap(year) && c->day >= 60;
        day = date_year_days(year) + c->day - (c->kind == TZ_DAY_JULIAN) + skip;
    }
    return day * DAY_MS + ((int64_t)c->time_s - offset_s) * 1000;
}

/* A piece of time in which the clock is not changed; not always the longest such piece. */
struct piece {
    int64_t from_ms, until_ms;
    int32_t offset_s;
};

/* A year's daylight time ends in the same year (north) or in the next one (south).  Looking at four
 * years finds all that reaches into the year of the instant, because a change is at most a week
 * and two days away from the year it belongs to; the piece does not reach out of that year. */
static struct piece piece_at(const struct tz *z, int64_t utc_ms)
{
    int32_t year = date_of_days(floor_div(utc_ms, DAY_MS)).year;
    struct piece p = { date_year_days(year) * DAY_MS, date_year_days(year + 1) * DAY_MS, z->std_s };
    for (int32_t y = year - 2; z->dst[0] && y <= year + 1; y++) {
        int64_t start = change_ms(&z->start, y, z->std_s), end = change_ms(&z->end, y, z->dst_s);
        if (end < start)
            end = change_ms(&z->end, y + 1, z->dst_s);
        if (start <= utc_ms && utc_ms < end)
            p.offset_s = z->dst_s;
        p.from_ms = MAX(p.from_ms, end <= utc_ms ? end : start <= utc_ms ? start : p.from_ms);
        p.until_ms = MIN(p.until_ms, start > utc_ms ? start : end > utc_ms ? end : p.until_ms);
    }
    return p;
}

int64_t tz_local_ms(const struct tz *z, int64_t utc_ms)
{
    return utc_ms + (int64_t)piece_at(z, utc_ms).offset_s * 1000;
}

int64_t tz_next_change_ms(const struct tz *z, int64_t utc_ms)
{
    int64_t last = utc_ms + 30 * 366 * DAY_MS;
    struct piece now = piece_at(z, utc_ms);
    for (int64_t t = now.until_ms; z->dst[0] && t < last;) {
        struct piece p = piece_at(z, t);
        if (p.offset_s != now.offset_s)
            return t;
        t = p.until_ms;
    }
    return INT64_MAX;
}

/* ---- and back ----
 *
 * Whatever the clock is set to, it shows less than `local` before `early` and no less from `late`
 * on.  In between it depends: on the larger offset it shows `local` or more, on the smaller less.
 */
static int64_t early_ms(const struct tz *z, int64_t local_ms)
{
    int32_t most = z->dst[0] ? MAX(z->std_s, z->dst_s) : z->std_s;
    return local_ms - (int64_t)most * 1000;
}

static int64_t late_ms(const struct tz *z, int64_t local_ms)
{
    int32_t least = z->dst[0] ? MIN(z->std_s, z->dst_s) : z->std_s;
    return local_ms - (int64_t)least * 1000;
}

int64_t tz_first_ms(const struct tz *z, int64_t local_ms)
{
    int64_t late = late_ms(z, local_ms), t = early_ms(z, local_ms);
    while (t < late) {
        struct piece p = piece_at(z, t);
        if (t + (int64_t)p.offset_s * 1000 >= local_ms)
            return t;
        t = p.until_ms;
    }
    return late;
}

int64_t tz_last_ms(const struct tz *z, int64_t local_ms)
{
    int64_t early = early_ms(z, local_ms), t = late_ms(z, local_ms);
    while (t > early) {
        struct piece p = piece_at(z, t - 1);
        if (t - 1 + (int64_t)p.offset_s * 1000 < local_ms)
            return t;
        t = p.from_ms;
    }
    return early;
}
