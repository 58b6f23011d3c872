#include "cli/when.h"

#include <string.h>
#include <time.h>

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

int when_parse(const char *text, int64_t now_ms, int64_t *out_ms, struct err *e)
{
    static const char *const forms[] = {
        "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M",
        "%Y-%m-%d",          "%H:%M:%S",          "%H:%M"
    };
    time_t now = (time_t)(now_ms / 1000);
    struct tm today;
    struct err why;
    int64_t ago;
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
    if (strncmp(text, "now-", 4) == 0)
        text += 4;
    if (!strchr(text, ':') && parse_duration_ms(str_of(text), &ago, &why) == 0) {
        *out_ms = now_ms - ago;
        return 0;
    }
    err_set(e, ERR_INVALID, "'%s' is no point in time", text);
    return err_hint(
        e, "write 2026-03-01, 2026-03-01T12:30, 12:30, today, now, or 3d for three days ago");
}
