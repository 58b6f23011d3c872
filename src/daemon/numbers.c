#include "daemon/numbers.h"

#include <stdio.h>

#include "base/parse.h"

#define UNIT "_ms"
#define SHORT_MAX 64

static bool is_time(const struct policy_key *k)
{
    size_t n = strlen(k->name);
    return n > strlen(UNIT) && strcmp(k->name + n - strlen(UNIT), UNIT) == 0;
}

static bool is_switch(const struct policy_key *k)
{
    return k->min == 0 && k->max == 1;
}

/* The name without its unit; the same when it has none. */
static const char *short_name(const struct policy_key *k, char out[static SHORT_MAX])
{
    size_t n = strlen(k->name) - (is_time(k) ? strlen(UNIT) : 0);
    snprintf(out, SHORT_MAX, "%.*s", (int)n, k->name);
    return out;
}

static int check_bounds(const struct policy_key *k, int64_t ms, struct err *e)
{
    char found[32], least[32], most[32];
    if (ms >= k->min && ms <= k->max)
        return 0;
    return err_set(e, ERR_INVALID, "%s; it must lie between %s and %s",
                   format_duration_ms(ms, found), format_duration_ms(k->min, least),
                   format_duration_ms(k->max, most));
}

/* Numbers below a name with its unit are of that unit; below the short one they are seconds, as in
 * every other setting. */
static int read_value(const struct json *v, const struct policy_key *k, bool in_ms, int64_t *out,
                      struct err *e)
{
    AUTO(buf_free) struct buf b = BUF(256);
    struct json_out w = { .b = &b };
    struct str s;
    bool yes;
    if (json_is_string(v)) {
        if (json_as_str(v, 64, &s, e) < 0)
            return -1;
        buf_add(&b, s);
    } else {
        json_put(&w, NULL, v);
    }
    s = buf_str(&b);
    if (is_switch(k)) {
        if (parse_bool(s, &yes, e) < 0)
            return -1;
        *out = yes;
        return 0;
    }
    if (!is_time(k) || (in_ms && json_is_number(v)))
        return parse_i64(s, k->min, k->max, out, e);
    return parse_duration_ms(s, out, e) < 0 ? -1 : check_bounds(k, *out, e);
}

static int read_number(const struct json *section, const struct policy_key *k, struct policy *out,
                       struct err *e)
{
    char name[SHORT_MAX];
    const struct json *whole = json_find(section, k->name);
    const struct json *brief = is_time(k) ? json_find(section, short_name(k, name)) : NULL;
    if (whole && brief)
        return err_set(e, ERR_INVALID, "%s and %s are the same: one of them", name, k->name);
    if (!whole && !brief)
        return 0;
    if (read_value(whole ? whole : brief, k, whole != NULL, policy_value(out, k), e) < 0)
        return err_wrap(e, "%s", whole ? k->name : name);
    return 0;
}

int numbers_read(const struct json *section, struct policy *out, struct err *e)
{
    char name[POLICY_KEYS_MAX][SHORT_MAX];
    const char *known[2 * POLICY_KEYS_MAX];
    const struct policy_key *k;
    struct policy p = policy_default();
    size_t n = 0;
    for (size_t i = 0; (k = policy_key(i)); i++) {
        known[n++] = k->name;
        if (is_time(k))
            known[n++] = short_name(k, name[i]);
    }
    bool said = section && !json_is_null(section); /* "policy:" alone says nothing */
    if (said && json_only(section, known, n, e) < 0)
        return -1;
    for (size_t i = 0; said && (k = policy_key(i)); i++)
        if (read_number(section, k, &p, e) < 0)
            return -1;
    *out = p;
    return 0;
}

void numbers_print(const struct policy *p, struct buf *out)
{
    const struct policy_key *k;
    struct policy copy = *p;
    buf_addz(out, "policy:\n");
    for (size_t i = 0; (k = policy_key(i)); i++) {
        char name[SHORT_MAX], text[32];
        int64_t v = *policy_value(&copy, k);
        buf_printf(out, "  %s: ", short_name(k, name));
        if (is_switch(k))
            buf_addz(out, v ? "yes" : "no");
        else if (is_time(k))
            buf_addz(out, format_duration_ms(v, text));
        else
            buf_printf(out, "%lld", (long long)v);
        buf_addc(out, '\n');
    }
}
