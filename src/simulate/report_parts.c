#include "simulate/report_parts.h"

#include <math.h>
#include <stdio.h>

#define MINUTE_MS 60000
#define HOUR_MS (60 * (int64_t)MINUTE_MS)
#define DAY_MS (24 * HOUR_MS)
#define MOST 1e15 /* doubles are whole numbers up to here and beyond */

static bool known(double v)
{
    return isfinite(v) && v >= 0 && v < MOST;
}

static const char *unknown(char out[static TEXT_MAX])
{
    snprintf(out, TEXT_MAX, "%s", TEXT_UNKNOWN);
    return out;
}

/* Tenths are written as two whole numbers: printf's decimal point is the locale's. */
static const char *tenths(double v, const char *unit, char out[static TEXT_MAX])
{
    long long t = llround(v * 10);
    snprintf(out, TEXT_MAX, "%lld.%lld%s", t / 10, t % 10, unit);
    return out;
}

/* "2h 5m", and "2h" when the second part is none. */
static const char *pair(long long v, int in_first, const char units[static 2],
                        char out[static TEXT_MAX])
{
    int n = snprintf(out, TEXT_MAX, "%lld%c", v / in_first, units[0]);
    if (v % in_first)
        snprintf(out + n, TEXT_MAX - (size_t)n, " %lld%c", v % in_first, units[1]);
    return out;
}

const char *text_duration(double s, char out[static TEXT_MAX])
{
    if (!known(s))
        return unknown(out);
    if (s > 0 && s < 9.95)
        return tenths(s, "s", out);
    long long seconds = llround(s), minutes = llround(s / 60), hours = llround(s / 3600);
    if (seconds < 60)
        snprintf(out, TEXT_MAX, "%llds", seconds);
    else if (seconds < 600)
        return pair(seconds, 60, "ms", out);
    else if (minutes < 60)
        snprintf(out, TEXT_MAX, "%lldm", minutes);
    else if (minutes < 24 * 60)
        return pair(minutes, 60, "hm", out);
    else
        return pair(hours, 24, "dh", out);
    return out;
}

const char *text_percent(double part, char out[static TEXT_MAX])
{
    return known(part) ? tenths(part * 100, " %", out) : unknown(out);
}

const char *text_of_100(double v, char out[static TEXT_MAX])
{
    return known(v) ? tenths(v, " %", out) : unknown(out);
}

const char *text_ratio(double v, char out[static TEXT_MAX])
{
    if (!known(v))
        return unknown(out);
    long long h = llround(v * 100);
    snprintf(out, TEXT_MAX, "%lld.%02lld", h / 100, h % 100);
    return out;
}

const char *text_count(double v, char out[static TEXT_MAX])
{
    if (!known(v))
        return unknown(out);
    if (v < 99.95 && fabs(v - nearbyint(v)) >= 0.05)
        return tenths(v, "", out);
    char digits[TEXT_MAX];
    int n = snprintf(digits, sizeof digits, "%lld", llround(v));
    int to = 0;
    for (int i = 0; i < n; i++) {
        if (i && (n - i) % 3 == 0)
            out[to++] = ',';
        out[to++] = digits[i];
    }
    out[to] = '\0';
    return out;
}

const char *text_weight(uint32_t milli, char out[static TEXT_MAX])
{
    int n = snprintf(out, TEXT_MAX, "%u.%03u", milli / 1000, milli % 1000);
    while (out[n - 1] == '0')
        out[--n] = '\0';
    if (out[n - 1] == '.')
        out[n - 1] = '\0';
    return out;
}

bool report_has_weekdays(const struct report *r)
{
    return r->end_ms - r->begin_ms <= 14 * DAY_MS;
}

const char *text_moment(const struct report *r, int64_t at_ms, char out[static TEXT_MAX])
{
    static const char *const names[] = { "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun" };
    int64_t from = report_has_weekdays(r) ? 0 : r->begin_ms;
    int64_t of_day = ((at_ms - from) % DAY_MS + DAY_MS) % DAY_MS;
    int64_t day = (at_ms - from - of_day) / DAY_MS;
    int hour = (int)(of_day / HOUR_MS), minute = (int)(of_day % HOUR_MS / MINUTE_MS);
    if (report_has_weekdays(r))
        snprintf(out, TEXT_MAX, "%s %02d:%02d", names[(day % 7 + 7) % 7], hour, minute);
    else
        snprintf(out, TEXT_MAX, "day %lld, %02d:%02d", (long long)day + 1, hour, minute);
    return out;
}

double report_got(const struct report_tenant *t)
{
    return t->entitled_hours > 0 ? t->gpu_hours / t->entitled_hours : NAN;
}

#define AT(field) offsetof(struct report, field)

struct figures report_speed(void)
{
    static const struct figure of[] = {
        { "avg JCT", "Submit to end, mean", AT(avg_jct_s), text_duration, false },
        { "avg queue", "Wait, mean", AT(avg_queue_s), text_duration, false },
        { "p50 queue", "Wait, median", AT(p50_queue_s), text_duration, false },
        { "p90 queue", "Wait, 9 of 10", AT(p90_queue_s), text_duration, false },
        { "p99 queue", "Wait, 99 of 100", AT(p99_queue_s), text_duration, false },
        { "at once", "Started at once", AT(started_at_once), text_percent, true },
        { "utilisation", "GPUs in use", AT(utilisation), text_percent, true },
    };
    return (struct figures){ of, ARRAY_LEN(of) };
}

/* Those of jobs stand last: only some traces have them. */
struct figures report_fairness(const struct report *r)
{
    static const struct figure of[] = {
        { "satisfaction", "Had of what was due", AT(satisfaction), text_percent, true },
        { "worst tenant", "The same, worst tenant", AT(worst_tenant), text_percent, true },
        { "evenness", "Evenness (Jain)", AT(jain), text_ratio, true },
        { "freezes a job", "Freezes a job", AT(freezes), text_ratio, false },
        { "makespan", "First submit to last end", AT(makespan_s), text_duration, false },
        { "worst rho", "Worst rho", AT(worst_rho), text_ratio, false },
        { "unfair jobs", "Unfair jobs", AT(unfair_pct), text_of_100, false },
    };
    return (struct figures){ of, r->rho_note ? ARRAY_LEN(of) : ARRAY_LEN(of) - 2 };
}

double figure_of(const struct figure *f, const struct report *r)
{
    return *(const double *)(const void *)((const char *)r + f->offset);
}

void html_text(struct buf *out, const char *z)
{
    for (; z && *z; z++) {
        switch (*z) {
        case '<': buf_addz(out, "&lt;"); break;
        case '>': buf_addz(out, "&gt;"); break;
        case '&': buf_addz(out, "&amp;"); break;
        case '"': buf_addz(out, "&quot;"); break;
        case '\'': buf_addz(out, "&#39;"); break;
        default: buf_addc(out, *z);
        }
    }
}

struct page_tenants page_tenants(const struct report *r)
{
    struct page_tenants p = { 0 };
    uint32_t room = r->tenants > PAGE_COLOURS ? PAGE_COLOURS - 1 : r->tenants;
    for (uint32_t i = 0; i < r->tenants && p.n < room; i++) {
        uint32_t larger = 0;
        for (uint32_t j = 0; j < r->tenants; j++)
            larger += r->tenant[j].gpu_hours > r->tenant[i].gpu_hours ||
                      (j < i && !(r->tenant[j].gpu_hours < r->tenant[i].gpu_hours));
        if (larger < room)
            p.shown[p.n++] = i;
    }
    p.rest = r->tenants - p.n;
    return p;
}

uint32_t page_colour(const struct page_tenants *p, uint32_t tenant)
{
    for (uint32_t i = 0; i < p->n; i++)
        if (p->shown[i] == tenant)
            return i;
    return PAGE_COLOURS;
}

void json_put_points(struct json_out *w, const char *key, const float *v, uint32_t n)
{
    json_begin(w, key, '[');
    for (uint32_t i = 0; i < n; i++) {
        double x = v && isfinite(v[i]) && fabs((double)v[i]) < MOST ? (double)v[i] : 0;
        long long t = llround(x * 10);
        if (t % 10)
            json_put_f64(w, NULL, x, 1);
        else
            json_put_i64(w, NULL, t / 10);
    }
    json_end(w, ']');
}
