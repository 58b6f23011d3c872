#include "base/parse.h"

#include <stdio.h>
#include <yyjson.h>

__extension__ typedef unsigned __int128 u128;

#define QUOTE(s) (int)((s).n > 60 ? 60 : (s).n), (s).p

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Takes the digits at the front of *s; false when there is none or they do not fit. */
static bool take_u64(struct str *s, uint64_t *out)
{
    uint64_t v = 0;
    size_t i = 0;
    for (; i < s->n && is_digit(s->p[i]); i++)
        if (__builtin_mul_overflow(v, 10u, &v) ||
            __builtin_add_overflow(v, (uint64_t)(s->p[i] - '0'), &v))
            return false;
    if (i == 0)
        return false;
    *s = (struct str){ s->p + i, s->n - i };
    *out = v;
    return true;
}

int parse_u64(struct str s, uint64_t max, uint64_t *out, struct err *e)
{
    struct str rest = s;
    uint64_t v;
    if (take_u64(&rest, &v) && rest.n == 0 && v <= max) {
        *out = v;
        return 0;
    }
    err_set(e, ERR_INVALID, "'%.*s' is not a whole number from 0 to %llu", QUOTE(s),
            (unsigned long long)max);
    return err_hint(e, "write digits only, like %llu", (unsigned long long)MIN(max, 42u));
}

int parse_i64(struct str s, int64_t min, int64_t max, int64_t *out, struct err *e)
{
    bool minus = s.n && s.p[0] == '-';
    struct str rest = minus ? (struct str){ s.p + 1, s.n - 1 } : s;
    uint64_t size;
    int64_t v;
    if (take_u64(&rest, &size) && rest.n == 0 &&
        !(minus ? __builtin_sub_overflow(0, size, &v) : __builtin_add_overflow(0, size, &v)) &&
        v >= min && v <= max) {
        *out = v;
        return 0;
    }
    err_set(e, ERR_INVALID, "'%.*s' is not a whole number from %lld to %lld", QUOTE(s),
            (long long)min, (long long)max);
    return err_hint(e, "write digits only, like %lld", (long long)(max > 0 ? MIN(max, 42) : max));
}

static size_t digits_at(struct str s, size_t i)
{
    size_t n = 0;
    while (i + n < s.n && is_digit(s.p[i + n]))
        n++;
    return n;
}

/* Where [.digits][e[+-]digits] from `i` on ends, or 0 when it is not that. */
static size_t fraction_end(struct str s, size_t i)
{
    size_t n;
    if (i < s.n && s.p[i] == '.') {
        if (!(n = digits_at(s, i + 1)))
            return 0;
        i += 1 + n;
    }
    if (i < s.n && (s.p[i] == 'e' || s.p[i] == 'E')) {
        bool sign = i + 1 < s.n && (s.p[i + 1] == '-' || s.p[i + 1] == '+');
        i += sign ? 2 : 1;
        if (!(n = digits_at(s, i)))
            return 0;
        i += n;
    }
    return i;
}

/* Copies [-]digits[.digits][e[+-]digits] in JSON's spelling, which has no leading zeros. */
static bool json_number(struct str s, char *out, size_t size)
{
    bool minus = s.n && s.p[0] == '-';
    size_t from = minus ? 1 : 0, n = digits_at(s, from);
    if (s.n >= size || n == 0 || fraction_end(s, from + n) != s.n)
        return false;
    for (; n > 1 && s.p[from] == '0'; n--)
        from++;
    snprintf(out, size, "%s%.*s", minus ? "-" : "", (int)(s.n - from), s.p + from);
    return true;
}

/* yyjson reads numbers without looking at the locale and rounds correctly; strtod does the first
 * only until somebody calls setlocale. */
int parse_f64(struct str s, double min, double max, double *out, struct err *e)
{
    char text[512];
    yyjson_val val = { 0 };
    if (json_number(s, text, sizeof text) && yyjson_read_number(text, &val, 0, NULL, NULL)) {
        double v = yyjson_get_num(&val);
        if (v >= min && v <= max) {
            *out = v;
            return 0;
        }
    }
    err_set(e, ERR_INVALID, "'%.*s' is not a number from %g to %g", QUOTE(s), min, max);
    return err_hint(e, "write it like 2, 0.5 or 1e6");
}

int parse_bool(struct str s, bool *out, struct err *e)
{
    static const struct {
        const char *word;
        bool value;
    } words[] = {
        { "yes", true }, { "no", false },  { "true", true }, { "false", false },
        { "on", true },  { "off", false }, { "1", true },    { "0", false },
    };
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (str_is(s, words[i].word)) {
            *out = words[i].value;
            return 0;
        }
    err_set(e, ERR_INVALID, "'%.*s' is neither yes nor no", QUOTE(s));
    return err_hint(e, "write yes or no (also true, false, on, off, 1, 0)");
}

/* Largest first: a duration names each unit at most once, in this order. */
static const struct {
    const char *name;
    int64_t ms;
} time_units[] = {
    { "w", 604800000 }, { "d", 86400000 }, { "h", 3600000 },
    { "m", 60000 },     { "s", 1000 },     { "ms", 1 },
};

static bool add_scaled(int64_t *sum, uint64_t v, int64_t unit)
{
    int64_t part;
    return !__builtin_mul_overflow(v, unit, &part) && !__builtin_add_overflow(*sum, part, sum);
}

/* 1h30m and the like. */
static bool duration_of_units(struct str s, int64_t *out_ms)
{
    int64_t sum = 0;
    size_t next = 0;
    while (s.n) {
        uint64_t v;
        if (!take_u64(&s, &v))
            return false;
        size_t n = 0;
        while (n < s.n && !is_digit(s.p[n]))
            n++;
        size_t u = next;
        while (u < ARRAY_LEN(time_units) && !str_is((struct str){ s.p, n }, time_units[u].name))
            u++;
        if (u == ARRAY_LEN(time_units) || !add_scaled(&sum, v, time_units[u].ms))
            return false;
        next = u + 1;
        s = (struct str){ s.p + n, s.n - n };
    }
    *out_ms = sum;
    return true;
}

/* [days-]hours:minutes[:seconds]; inside a larger unit each number stays below one of it. */
static bool duration_of_clock(struct str s, int64_t *out_ms)
{
    static const int64_t unit[] = { 3600000, 60000, 1000 };
    int64_t sum = 0;
    struct str days, rest, field;
    uint64_t v;
    bool has_days = str_cut(s, '-', &days, &rest), more = true;
    if (!has_days)
        rest = s;
    else if (!take_u64(&days, &v) || days.n || !add_scaled(&sum, v, 86400000))
        return false;
    size_t i = 0;
    for (; more && i < ARRAY_LEN(unit); i++) {
        more = str_cut(rest, ':', &field, &rest);
        if (!take_u64(&field, &v) || field.n || !add_scaled(&sum, v, unit[i]))
            return false;
        if (i > 0 ? v > 59 : has_days && v > 23)
            return false;
    }
    if (more || i < 2)
        return false;
    *out_ms = sum;
    return true;
}

int parse_duration_ms(struct str s, int64_t *out_ms, struct err *e)
{
    struct str rest = s;
    uint64_t seconds;
    int64_t ms = 0;
    bool ok;
    if (s.n && memchr(s.p, ':', s.n))
        ok = duration_of_clock(s, &ms);
    else if (take_u64(&rest, &seconds) && rest.n == 0)
        ok = add_scaled(&ms, seconds, 1000);
    else
        ok = s.n > 0 && duration_of_units(s, &ms);
    if (ok) {
        *out_ms = ms;
        return 0;
    }
    err_set(e, ERR_INVALID, "'%.*s' is not a duration", QUOTE(s));
    return err_hint(e, "write it like 90s, 30m, 8h, 2d, 1h30m or 1-12:00:00 (days-h:m:s)");
}

/* A decimal number as value / 10^places, so that 1.5 and 0.1 are exact. */
struct decimal {
    uint64_t value, scale;
};

static bool take_decimal(struct str *s, struct decimal *out)
{
    struct decimal d = { .scale = 1 };
    if (!take_u64(s, &d.value))
        return false;
    if (s->n && s->p[0] == '.') {
        size_t n = digits_at(*s, 1);
        if (n == 0)
            return false;
        for (size_t i = 1; i <= n; i++) {
            if (d.scale >= UINT64_C(1000000000000) || d.value >= UINT64_MAX / 10 - 1)
                return false;
            d.scale *= 10;
            d.value = d.value * 10 + (uint64_t)(s->p[i] - '0');
        }
        *s = (struct str){ s->p + 1 + n, s->n - 1 - n };
    }
    *out = d;
    return true;
}

/* Smallest first, a binary unit before the decimal one beside it; "" is bytes. */
static const struct {
    const char *name;
    uint64_t bytes;
} size_units[] = {
    { "", 1 },
    { "Ki", UINT64_C(1) << 10 },
    { "K", UINT64_C(1000) },
    { "Mi", UINT64_C(1) << 20 },
    { "M", UINT64_C(1000000) },
    { "Gi", UINT64_C(1) << 30 },
    { "G", UINT64_C(1000000000) },
    { "Ti", UINT64_C(1) << 40 },
    { "T", UINT64_C(1000000000000) },
    { "Pi", UINT64_C(1) << 50 },
    { "P", UINT64_C(1000000000000000) },
};

int parse_size_bytes(struct str s, uint64_t *out_bytes, struct err *e)
{
    struct str unit = s;
    struct decimal d;
    bool ok = take_decimal(&unit, &d);
    if (unit.n > 1 && unit.p[unit.n - 1] == 'B')
        unit.n--;
    for (size_t i = 0; ok && i < ARRAY_LEN(size_units); i++) {
        if (!str_is(unit, size_units[i].name))
            continue;
        u128 bytes = (u128)d.value * size_units[i].bytes / d.scale;
        if (bytes > UINT64_MAX || (unit.n == 0 && d.scale > 1))
            break;
        *out_bytes = (uint64_t)bytes;
        return 0;
    }
    err_set(e, ERR_INVALID, "'%.*s' is not a size", QUOTE(s));
    return err_hint(e, "write it like 16Gi, 1.5Ti, 512Mi (binary) or 16G (decimal)");
}

int parse_milli(struct str s, uint64_t max_milli, uint64_t *out_milli, struct err *e)
{
    struct str rest = s;
    struct decimal d;
    if (take_decimal(&rest, &d)) {
        bool milli = rest.n == 1 && rest.p[0] == 'm' && d.scale == 1;
        u128 scaled = (u128)d.value * (milli ? 1 : 1000);
        if ((milli || rest.n == 0) && scaled % d.scale == 0 && scaled / d.scale <= max_milli) {
            *out_milli = (uint64_t)(scaled / d.scale);
            return 0;
        }
    }
    err_set(e, ERR_INVALID, "'%.*s' is not an amount from 0 to %llu.%03llu", QUOTE(s),
            (unsigned long long)(max_milli / 1000), (unsigned long long)(max_milli % 1000));
    return err_hint(e, "write it like 4, 0.5, 1.25 or 250m, with at most three decimals");
}

const char *format_duration_ms(int64_t ms, char out[static 32])
{
    uint64_t left = ms < 0 ? -(uint64_t)ms : (uint64_t)ms;
    int n = snprintf(out, 32, "%s", ms < 0 ? "-" : "");
    if (left == 0)
        snprintf(out, 32, "0s");
    /* 8 days are "8d", not "1w1d". */
    bool weeks = left % (uint64_t)time_units[0].ms == 0;
    for (size_t i = weeks ? 0 : 1; i < ARRAY_LEN(time_units) && left; i++) {
        uint64_t unit = (uint64_t)time_units[i].ms;
        if (left >= unit)
            n += snprintf(out + n, 32 - (size_t)n, "%llu%s", (unsigned long long)(left / unit),
                          time_units[i].name);
        left %= unit;
    }
    return out;
}

const char *format_size(uint64_t bytes, char out[static 32])
{
    snprintf(out, 32, "%llu", (unsigned long long)bytes);
    for (size_t i = 1; i < ARRAY_LEN(size_units); i++) {
        uint64_t unit = size_units[i].bytes, scale = 1;
        int places = 0;
        while (places < 3 && (u128)(bytes % unit) * scale % unit) {
            scale *= 10;
            places++;
        }
        u128 part = (u128)(bytes % unit) * scale;
        if (part % unit)
            continue;
        char text[32];
        int n = snprintf(text, sizeof text, "%llu", (unsigned long long)(bytes / unit));
        if (places)
            n += snprintf(text + n, sizeof text - (size_t)n, ".%0*llu", places,
                          (unsigned long long)(part / unit));
        snprintf(text + n, sizeof text - (size_t)n, "%s", size_units[i].name);
        if (strlen(text) < strlen(out))
            memcpy(out, text, sizeof text);
    }
    return out;
}
