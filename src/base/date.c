#include "base/date.h"

#include <stdio.h>

#define DAY_MS INT64_C(86400000)
#define YEAR_9999_MS INT64_C(253402300799999)

/* Days since 1970-01-01.  Years begin in March here, so that the day that comes and goes is the
 * last: then the days before a month follow a straight line. */
static int64_t days_of(int64_t year, int64_t month, int64_t day)
{
    year -= month <= 2;
    int64_t era = year / 400, of_era = year % 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static void date_of(int64_t days, int *out_year, int *out_month, int *out_day)
{
    days += 719468;
    int64_t era = days / 146097, of_era = days % 146097;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    int64_t month = (5 * of_year + 2) / 153;
    *out_day = (int)(of_year - (153 * month + 2) / 5 + 1);
    *out_month = (int)(month < 10 ? month + 3 : month - 9);
    *out_year = (int)(year + era * 400 + (*out_month <= 2));
}

/* The next `digits` digits, and the byte that has to follow ('\0': any). */
static bool take(struct str *s, size_t digits, char then, int64_t max, int64_t *out)
{
    int64_t v = 0;
    if (s->n < digits + (then != '\0'))
        return false;
    for (size_t i = 0; i < digits; i++) {
        if (s->p[i] < '0' || s->p[i] > '9')
            return false;
        v = v * 10 + (s->p[i] - '0');
    }
    if (v > max || (then && s->p[digits] != then))
        return false;
    size_t used = digits + (then != '\0');
    *s = (struct str){ s->p + used, s->n - used };
    *out = v;
    return true;
}

static bool take_byte(struct str *s, const char *either)
{
    if (s->n == 0 || s->p[0] == '\0' || !strchr(either, s->p[0]))
        return false;
    *s = (struct str){ s->p + 1, s->n - 1 };
    return true;
}

/* .25 and .250 are 250 ms; what is finer than that is cut off. */
static bool take_fraction(struct str *s, int64_t *out_ms)
{
    int64_t unit = 100, ms = 0;
    size_t n = 0;
    *out_ms = 0;
    if (!take_byte(s, "."))
        return true;
    for (; n < s->n && s->p[n] >= '0' && s->p[n] <= '9'; n++, unit /= 10)
        ms += unit * (s->p[n] - '0');
    *s = (struct str){ s->p + n, s->n - n };
    *out_ms = ms;
    return n > 0 && n <= 9;
}

static bool take_zone(struct str *s, int64_t *out_ms)
{
    int64_t hours, minutes;
    *out_ms = 0;
    if (take_byte(s, "Zz"))
        return true;
    bool west = s->n && s->p[0] == '-';
    if (!take_byte(s, "+-") || !take(s, 2, ':', 23, &hours) || !take(s, 2, '\0', 59, &minutes))
        return false;
    *out_ms = (hours * 60 + minutes) * (west ? -60000 : 60000);
    return true;
}

static bool read_date(struct str s, int64_t *out_ms)
{
    int64_t year, month, day, hour, minute, second, fraction, zone;
    int y, m, d;
    if (!take(&s, 4, '-', 9999, &year) || !take(&s, 2, '-', 12, &month) ||
        !take(&s, 2, '\0', 31, &day) || !take_byte(&s, "Tt ") || !take(&s, 2, ':', 23, &hour) ||
        !take(&s, 2, ':', 59, &minute) || !take(&s, 2, '\0', 60, &second) ||
        !take_fraction(&s, &fraction) || !take_zone(&s, &zone) || s.n || year < 1970 || month < 1 ||
        day < 1)
        return false;
    int64_t days = days_of(year, month, day);
    date_of(days, &y, &m, &d);
    if (m != month || d != day) /* the 30th of February */
        return false;
    int64_t ms = days * DAY_MS + ((hour * 60 + minute) * 60 + second) * 1000 + fraction - zone;
    *out_ms = ms;
    return ms >= 0 && ms <= YEAR_9999_MS;
}

int date_parse(struct str s, int64_t *out_ms, struct err *e)
{
    int64_t ms;
    if (read_date(s, &ms)) {
        *out_ms = ms;
        return 0;
    }
    err_set(e, ERR_INVALID, "'%.*s' is not a time with its zone", (int)MIN(s.n, (size_t)60), s.p);
    return err_hint(e, "write it like 2026-03-01T12:30:00Z or 2026-03-01T13:30:00+01:00");
}

const char *date_format(int64_t ms, char out[static 32])
{
    int year, month, day;
    if (ms < 0 || ms > YEAR_9999_MS)
        return "?";
    date_of(ms / DAY_MS, &year, &month, &day);
    int in_day = (int)(ms % DAY_MS), s = in_day / 1000, rest = in_day % 1000;
    int n = snprintf(out, 32, "%04d-%02d-%02dT%02d:%02d:%02d", year, month, day, s / 3600,
                     s / 60 % 60, s % 60);
    if (rest)
        n += snprintf(out + n, 32 - (size_t)n, ".%03d", rest);
    snprintf(out + n, 32 - (size_t)n, "Z");
    return out;
}
