#include "cli/text.h"

#include <stdio.h>
#include <time.h>

/* One character: its length in bytes, its width in columns, and whether it may be printed. */
struct glyph {
    size_t bytes;
    unsigned columns;
    bool ok;
};

static bool within(uint32_t c, uint32_t from, uint32_t to)
{
    return c >= from && c <= to;
}

static bool is_wide(uint32_t c)
{
    return within(c, 0x1100, 0x115f) || within(c, 0x2e80, 0xa4cf) || within(c, 0xac00, 0xd7a3) ||
           within(c, 0xf900, 0xfaff) || within(c, 0xfe30, 0xfe6f) || within(c, 0xff00, 0xff60) ||
           within(c, 0xffe0, 0xffe6) || within(c, 0x1f300, 0x1f64f) ||
           within(c, 0x1f900, 0x1f9ff) || within(c, 0x20000, 0x3fffd);
}

static bool is_combining(uint32_t c)
{
    return within(c, 0x300, 0x36f) || within(c, 0x1ab0, 0x1aff) || within(c, 0x20d0, 0x20ff) ||
           within(c, 0x200b, 0x200d) || within(c, 0xfe00, 0xfe0f) || within(c, 0xfe20, 0xfe2f);
}

/* Marks that turn the direction of text can make a line show something else than it says. */
static bool is_control(uint32_t c)
{
    return c < 0x20 || within(c, 0x7f, 0x9f) || within(c, 0x200e, 0x200f) ||
           within(c, 0x2028, 0x202e) || within(c, 0x2066, 0x2069);
}

static struct glyph next_glyph(struct str s)
{
    const unsigned char *u = (const unsigned char *)s.p;
    size_t n = u[0] < 0x80 ? 1 : u[0] >= 0xf0 ? 4 : u[0] >= 0xe0 ? 3 : u[0] >= 0xc2 ? 2 : 0;
    if (n == 0 || n > s.n || u[0] > 0xf4)
        return (struct glyph){ 1, 1, false };
    uint32_t c = n == 1 ? u[0] : u[0] & (0xffu >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        if ((u[i] & 0xc0) != 0x80)
            return (struct glyph){ 1, 1, false };
        c = c << 6 | (u[i] & 0x3fu);
    }
    if (is_control(c))
        return (struct glyph){ n, 1, false };
    return (struct glyph){ n, is_combining(c) ? 0 : is_wide(c) ? 2 : 1, true };
}

unsigned text_width(struct str s)
{
    unsigned columns = 0;
    while (s.n) {
        struct glyph g = next_glyph(s);
        columns += g.columns;
        s = (struct str){ s.p + g.bytes, s.n - g.bytes };
    }
    return columns;
}

static unsigned add_columns(struct buf *out, struct str s, unsigned columns)
{
    unsigned used = 0;
    while (s.n) {
        struct glyph g = next_glyph(s);
        if (used + g.columns > columns)
            break;
        if (g.ok)
            buf_add(out, (struct str){ s.p, g.bytes });
        else
            buf_addc(out, '?');
        used += g.columns;
        s = (struct str){ s.p + g.bytes, s.n - g.bytes };
    }
    return used;
}

unsigned text_add_fit(struct buf *out, struct str s, unsigned columns)
{
    if (text_width(s) <= columns)
        return add_columns(out, s, columns);
    if (columns == 0)
        return 0;
    unsigned used = add_columns(out, s, columns - 1);
    buf_addz(out, "…");
    return used + 1;
}

void text_add_clean(struct buf *out, struct str s)
{
    (void)add_columns(out, s, UINT32_MAX);
}

const char *text_duration(int64_t ms, char out[static 24])
{
    long long s = ms < 0 ? 0 : ms / 1000, m = s / 60, h = m / 60, d = h / 24;
    if (s < 60)
        snprintf(out, 24, "%llds", s);
    else if (m < 60)
        s % 60 ? snprintf(out, 24, "%lldm%02llds", m, s % 60) : snprintf(out, 24, "%lldm", m);
    else if (h < 24)
        m % 60 ? snprintf(out, 24, "%lldh%02lldm", h, m % 60) : snprintf(out, 24, "%lldh", h);
    else
        h % 24 ? snprintf(out, 24, "%lldd%lldh", d, h % 24) : snprintf(out, 24, "%lldd", d);
    return out;
}

#define DAY_MS INT64_C(86400000)

static bool to_local(int64_t t_ms, struct tm *out)
{
    time_t t = (time_t)(t_ms / 1000);
    return t_ms > 0 && localtime_r(&t, out);
}

const char *text_time(int64_t t_ms, char out[static 24])
{
    struct tm tm;
    if (!to_local(t_ms, &tm) || strftime(out, 24, "%Y-%m-%d %H:%M", &tm) == 0)
        snprintf(out, 24, "-");
    return out;
}

const char *text_soon(int64_t t_ms, int64_t now_ms, char out[static 24])
{
    struct tm tm, now;
    int64_t ahead_ms = t_ms - now_ms;
    if (t_ms == 0 || !to_local(t_ms, &tm) || !to_local(now_ms, &now)) {
        snprintf(out, 24, "never");
        return out;
    }
    bool today = tm.tm_yday == now.tm_yday && tm.tm_year == now.tm_year;
    bool near = ahead_ms > -6 * DAY_MS && ahead_ms < 6 * DAY_MS;
    if (strftime(out, 24, today ? "%H:%M" : near ? "%a %H:%M" : "%Y-%m-%d %H:%M", &tm) == 0)
        snprintf(out, 24, "-");
    return out;
}

const char *text_time_seconds(int64_t t_ms, char out[static 24])
{
    struct tm tm;
    if (!to_local(t_ms, &tm) || strftime(out, 24, "%Y-%m-%dT%H:%M:%S", &tm) == 0)
        snprintf(out, 24, "-");
    return out;
}

const char *text_mib(uint64_t mib, char out[static 24])
{
    if (mib < 1024)
        snprintf(out, 24, "%lluM", (unsigned long long)mib);
    else if (mib % 1024 == 0 || mib >= 10240)
        snprintf(out, 24, "%lluG", (unsigned long long)((mib + 512) / 1024));
    else
        snprintf(out, 24, "%.1fG", (double)mib / 1024);
    return out;
}

const char *text_milli(uint64_t milli, char out[static 24])
{
    if (milli % 1000 == 0)
        snprintf(out, 24, "%llu", (unsigned long long)(milli / 1000));
    else if (milli % 100 == 0)
        snprintf(out, 24, "%.1f", (double)milli / 1000);
    else
        snprintf(out, 24, "%.2f", (double)milli / 1000);
    return out;
}

/* Unset says nothing: terminals are UTF-8 today. */
static bool is_plain_locale(void)
{
    static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
    const char *locale = NULL;
    for (size_t i = 0; i < ARRAY_LEN(names) && (!locale || !locale[0]); i++)
        locale = getenv(names[i]);
    return locale && locale[0] && !strcasestr(locale, "utf-8") && !strcasestr(locale, "utf8");
}

const char *text_mark(enum text_mark m)
{
    static const struct {
        const char *nice, *plain;
    } marks[] = {
        [MARK_FULL] = { "█", "#" }, [MARK_PART] = { "▒", "+" }, [MARK_EMPTY] = { "░", "." },
        [MARK_GOOD] = { "✓", "+" }, [MARK_BAD] = { "✗", "x" },
    };
    return is_plain_locale() ? marks[m].plain : marks[m].nice;
}

void text_add_bar(struct buf *out, uint64_t used, uint64_t total, unsigned width)
{
    unsigned full = total ? (unsigned)((double)MIN(used, total) / (double)total * width + 0.5) : 0;
    for (unsigned i = 0; i < width; i++)
        buf_addz(out, text_mark(i < full ? MARK_FULL : MARK_EMPTY));
}
