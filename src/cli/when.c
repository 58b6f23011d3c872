#include "cli/when.h"

#include <string.h>
#include <time.h>

#include "base/date.h"
#include "base/parse.h"

static bool read_form(const char *text, const char *form, const struct tm *today, int64_t *out_ms)
{
    struct tm tm = *today;
    tm.tm_sec = 0;
    if (strchr(form, 'H') == NULL)
        tm.tm_hour = tm.tm_min = 0;
    const char *end = strptime(text, form, &tm);
    if (!end || *end)
        return false;
    tm.tm_isdst = -1;
    time_t t = mktime(&tm);
    *out_ms = (int64_t)t * 1000;
    return t != (time_t)-1;
}

/* yesterday, or yesterday 14:00 */
static bool read_yesterday(const char *text, const struct tm *today, int64_t *out_ms)
{
    struct tm day = *today;
    const char *rest = text + strlen("yesterday");
    if (strncmp(text, "yesterday", strlen("yesterday")) != 0)
        return false;
    day.tm_mday--;
    if (*rest == 0)
        return read_form("00:00", "%H:%M", &day, out_ms);
    return *rest == ' ' && (read_form(rest + 1, "%H:%M", &day, out_ms) ||
                            read_form(rest + 1, "%H:%M:%S", &day, out_ms));
}

/* 3d, now-3d, 3d ago */
static bool read_ago(const char *text, int64_t now_ms, int64_t *out_ms)
{
    struct str s = str_of(text), end = STR(" ago");
    struct err why;
    int64_t ago;
    if (strncmp(text, "now-", 4) == 0)
        s = str_of(text + 4);
    else if (s.n > end.n && memcmp(s.p + s.n - end.n, end.p, end.n) == 0)
        s.n -= end.n;
    if (memchr(s.p, ':', s.n) || parse_duration_ms(s, &ago, &why) < 0)
        return false;
    *out_ms = now_ms - ago;
    return true;
}

int when_parse(const char *text, int64_t now_ms, int64_t *out_ms, struct err *e)
{
    static const char *const forms[] = {
        "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M",
        "%Y-%m-%d",          "%H:%M:%S",          "%H:%M"
    };
    time_t now = (time_t)(now_ms / 1000);
    struct tm today;
    struct err why;
    if (strcmp(text, "today") == 0 || strcmp(text, "midnight") == 0)
        text = "00:00";
    if (strcmp(text, "now") == 0) {
        *out_ms = now_ms;
        return 0;
    }
    if (!localtime_r(&now, &today))
        return err_set(e, ERR_INTERNAL, "the clock shows no date");
    for (size_t i = 0; i < ARRAY_LEN(forms); i++)
        if (read_form(text, forms[i], &today, out_ms))
            return 0;
    if (read_yesterday(text, &today, out_ms) || read_ago(text, now_ms, out_ms) ||
        date_parse(str_of(text), out_ms, &why) == 0)
        return 0;
    err_set(e, ERR_INVALID, "'%s' is no point in time", text);
    return err_hint(e, "write 2026-03-01, 2026-03-01T12:30, 12:30, today, 'yesterday 14:00', now, "
                       "'3d ago', or 2026-03-01T12:30:00Z");
}

/* 2h, 90 (seconds), and Slurm's 30minutes. */
static int later(const char *text, int64_t *out_ms, struct err *e)
{
    static const struct {
        const char *word;
        int64_t ms;
    } units[] = { { "second", 1000 },
                  { "minute", 60000 },
                  { "hour", 3600000 },
                  { "day", 86400000 },
                  { "week", 604800000 } };
    size_t digits = strspn(text, "0123456789");
    struct str unit = str_of(text + digits);
    uint64_t n;
    if (unit.n && unit.p[unit.n - 1] == 's')
        unit.n--;
    for (size_t i = 0; digits && i < ARRAY_LEN(units); i++)
        if (str_is(unit, units[i].word)) {
            if (parse_u64((struct str){ text, digits }, 1000000, &n, e) < 0)
                return -1;
            *out_ms = (int64_t)n * units[i].ms;
            return 0;
        }
    return parse_duration_ms(str_of(text), out_ms, e);
}

/* A date that is none, like the 30th of February, becomes another one in the C library's hands. */
static bool read_day(const char *text, const char *form, int64_t *out_ms)
{
    struct tm asked = { 0 }, got = { 0 };
    const char *end = strptime(text, form, &asked);
    if (!end || *end || asked.tm_year < 70)
        return false;
    got = asked;
    got.tm_isdst = -1;
    time_t t = mktime(&got);
    *out_ms = (int64_t)t * 1000;
    return t > 0 && got.tm_mon == asked.tm_mon && got.tm_mday == asked.tm_mday;
}

int when_begin(const char *text, int64_t now_ms, int64_t *out_ms, struct err *e)
{
    static const char *const forms[] = { "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M",
                                         "%Y-%m-%d %H:%M", "%Y-%m-%d" };
    struct err why;
    int64_t ms;
    if (strncmp(text, "now+", 4) == 0) {
        if (later(text + 4, &ms, e) < 0)
            return -1;
        *out_ms = now_ms + ms;
        return 0;
    }
    if (strcmp(text, "now") == 0) {
        *out_ms = now_ms;
        return 0;
    }
    if (date_parse(str_of(text), out_ms, &why) == 0)
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(forms); i++)
        if (read_day(text, forms[i], out_ms))
            return 0;
    err_set(e, ERR_INVALID, "'%s' is no time to begin", text);
    return err_hint(e, "write now+2h, '2026-03-01 22:00' (here), or 2026-03-01T22:00:00+01:00");
}

#define ANY_DAY (-1)

/* "tue 10:00" is Tuesday, and "10:00" behind it. */
static int read_weekday(const char **text)
{
    static const char *const names[] = { "sunday",   "monday", "tuesday", "wednesday",
                                         "thursday", "friday", "saturday" };
    size_t letters = strcspn(*text, " ");
    for (int day = 0; day < 7; day++) {
        bool is_day = letters == strlen(names[day]) || letters == 3;
        if (!is_day || strncasecmp(*text, names[day], letters) != 0)
            continue;
        *text += letters + strspn(*text + letters, " ");
        return day;
    }
    return ANY_DAY;
}

bool when_next(const char *text, int64_t now_ms, int64_t *out_ms)
{
    static const char *const forms[] = { "%H:%M:%S", "%H:%M" };
    time_t now = (time_t)(now_ms / 1000);
    struct tm today;
    int weekday = read_weekday(&text);
    if (!localtime_r(&now, &today))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(forms); i++)
        for (int day = 0; day <= 7; day++) {
            struct tm at = today;
            at.tm_mday += day;
            if (weekday != ANY_DAY && (today.tm_wday + day) % 7 != weekday)
                continue;
            if (read_form(text, forms[i], &at, out_ms) && *out_ms > now_ms)
                return true;
        }
    return false;
}

int when_coming(const char *text, int64_t now_ms, int64_t after_ms, int64_t *out_ms, struct err *e)
{
    struct err why;
    if (when_next(text, after_ms, out_ms) || when_begin(text, now_ms, out_ms, &why) == 0)
        return 0;
    err_set(e, ERR_INVALID, "'%s' is no time", text);
    return err_hint(e, "write 22:00, 'tue 10:00', now+2h or '2026-03-01 22:00'");
}
