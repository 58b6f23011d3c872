#include "base/date.h"

#include <stdio.h>

#define FIRST_MS (INT64_C(-719162) * DAY_MS) /* 0001-01-01 */
#define END_MS (INT64_C(2932897) * DAY_MS)   /* after 9999-12-31 */
#define ERA_DAYS 146097                      /* of 400 years */
#define FROM_ERA 719468                      /* days from 0000-03-01 to 1970-01-01 */

bool date_is_leap(int32_t year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

uint8_t date_month_days(int32_t year, uint8_t month)
{
    static const uint8_t days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    return (uint8_t)(days[month - 1] + (month == 2 && date_is_leap(year)));
}

int64_t date_year_days(int32_t year)
{
    return date_days((struct date){ year, 1, 1 });
}

/* Years begin in March here and below, so that the day that comes and goes is the last: then the
 * days before a month follow a straight line. */
int64_t date_days(struct date d)
{
    int64_t year = d.year - (d.month <= 2), era = floor_div(year, 400), of_era = year - era * 400;
    int64_t of_year = (153 * (d.month + (d.month > 2 ? -3 : 9)) + 2) / 5 + d.day - 1;
    return era * ERA_DAYS + of_era * 365 + of_era / 4 - of_era / 100 + of_year - FROM_ERA;
}

struct date date_of_days(int64_t days)
{
    int64_t era = floor_div(days + FROM_ERA, ERA_DAYS), of_era = days + FROM_ERA - era * ERA_DAYS;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    int64_t from_march = (5 * of_year + 2) / 153;
    int64_t month = from_march < 10 ? from_march + 3 : from_march - 9;
    return (struct date){ .year = (int32_t)(year + era * 400 + (month <= 2)),
                          .month = (uint8_t)month,
                          .day = (uint8_t)(of_year - (153 * from_march + 2) / 5 + 1) };
}

uint8_t date_weekday(int64_t days)
{
    return (uint8_t)(days + 4 - 7 * floor_div(days + 4, 7)); /* day 0 was a Thursday */
}

/* ---- reading; `rest` is what is still unread ---- */

bool date_take(struct str *rest, struct date *out)
{
    struct str s = *rest;
    uint32_t year, month, day;
    if (!str_take_digits(&s, 4, &year) || !str_take(&s, '-') || !str_take_digits(&s, 2, &month) ||
        !str_take(&s, '-') || !str_take_digits(&s, 2, &day) || year < 1 || month < 1 ||
        month > 12 || day < 1 || day > date_month_days((int32_t)year, (uint8_t)month))
        return false;
    *rest = s;
    *out = (struct date){ (int32_t)year, (uint8_t)month, (uint8_t)day };
    return true;
}

/* hh:mm:ss, with the leap second. */
static bool take_seconds(struct str *rest, uint32_t *out_s)
{
    uint32_t h, m, s;
    if (!str_take_digits(rest, 2, &h) || !str_take(rest, ':') || !str_take_digits(rest, 2, &m) ||
        !str_take(rest, ':') || !str_take_digits(rest, 2, &s) || h > 23 || m > 59 || s > 60)
        return false;
    *out_s = (h * 60 + m) * 60 + s;
    return true;
}

/* .25 and .250 are 250 ms; what is finer than that is cut off. */
static bool take_fraction(struct str *rest, uint32_t *out_ms)
{
    uint32_t unit = 100, ms = 0, digit, n = 0;
    if (str_take(rest, '.')) {
        for (; str_take_digits(rest, 1, &digit); n++, unit /= 10)
            ms += unit * digit;
        if (n == 0 || n > 9)
            return false;
    }
    *out_ms = ms;
    return true;
}

/* Z, +hh:mm or -hh:mm: how far ahead of UTC. */
static bool take_zone(struct str *rest, int32_t *out_s)
{
    uint32_t h = 0, m = 0;
    bool utc = str_take(rest, 'Z') || str_take(rest, 'z'), west = !utc && str_take(rest, '-');
    if (!utc && ((!west && !str_take(rest, '+')) || !str_take_digits(rest, 2, &h) ||
                 !str_take(rest, ':') || !str_take_digits(rest, 2, &m) || h > 23 || m > 59))
        return false;
    *out_s = (int32_t)(h * 60 + m) * (west ? -60 : 60);
    return true;
}

static bool read_instant(struct str s, int64_t *out_ms)
{
    struct date d;
    uint32_t in_day_s, fraction_ms;
    int32_t ahead_s;
    if (!date_take(&s, &d) || !(str_take(&s, 'T') || str_take(&s, 't') || str_take(&s, ' ')) ||
        !take_seconds(&s, &in_day_s) || !take_fraction(&s, &fraction_ms) ||
        !take_zone(&s, &ahead_s) || s.n || d.year < 1970)
        return false;
    *out_ms = date_days(d) * DAY_MS + ((int64_t)in_day_s - ahead_s) * 1000 + fraction_ms;
    return *out_ms >= 0 && *out_ms < END_MS;
}

int date_parse(struct str s, int64_t *out_ms, struct err *e)
{
    int64_t ms;
    if (read_instant(s, &ms)) {
        *out_ms = ms;
        return 0;
    }
    err_set(e, ERR_INVALID, "'%.*s' is not a time with its zone", (int)MIN(s.n, (size_t)60), s.p);
    return err_hint(e, "write it like 2026-03-01T12:30:00Z or 2026-03-01T13:30:00+01:00");
}

/* ---- and writing ---- */

static const char *format(int64_t ms, bool with_ms, char out[static 32])
{
    int64_t days = floor_div(ms, DAY_MS);
    struct date d = date_of_days(days);
    int in_day = (int)(ms - days * DAY_MS), s = in_day / 1000;
    int n = snprintf(out, 32, "%04d-%02u-%02uT%02d:%02d:%02d", d.year, d.month, d.day, s / 3600,
                     s / 60 % 60, s % 60);
    if (with_ms)
        n += snprintf(out + n, 32 - (size_t)n, ".%03d", in_day % 1000);
    snprintf(out + n, 32 - (size_t)n, "Z");
    return out;
}

const char *date_format(int64_t ms, char out[static 32])
{
    return ms >= 0 && ms < END_MS ? format(ms, ms % 1000 != 0, out) : "?";
}

const char *date_stamp(int64_t ms, char out[static 32])
{
    return ms >= FIRST_MS && ms < END_MS ? format(ms, true, out) : "?";
}
