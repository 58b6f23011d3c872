#include "spec/start.h"

#include <stdio.h>

#include "base/date.h"
#include "base/parse.h"

#define BEGIN_MIN_MS INT64_C(100000000000) /* 1973: what is below were seconds */
#define BEGIN_MAX_MS INT64_C(253402300799999)
#define JOB_ID_MAX ((UINT64_C(1) << 53) - 1)

int start_read_time(const struct json *v, int64_t *out, struct err *e)
{
    uint64_t ms = 0;
    struct str s = { 0 };
    int64_t at = 0;
    if (json_is_string(v)) {
        if (json_as_str(v, 64, &s, e) < 0 || date_parse(s, &at, e) < 0)
            return -1;
    } else if (json_as_u64(v, BEGIN_MAX_MS, &ms, e) < 0) {
        return -1;
    } else if (at = (int64_t)ms, at < BEGIN_MIN_MS) {
        err_set(e, ERR_INVALID, "is %lld: a number is in milliseconds since 1970", (long long)at);
        return err_hint(e, "write it like 2026-03-01T22:00:00+01:00");
    }
    *out = MAX(at, INT64_C(1)); /* 0 means at once */
    return 0;
}

/* 17, "17", "ok:17" */
static int read_one_after(const struct json *v, struct spec_after *out, struct err *e)
{
    struct str s = { 0 }, word, number;
    *out = (struct spec_after){ .when = AFTER_OK };
    if (!json_is_string(v))
        return json_as_u64(v, JOB_ID_MAX, &out->job, e);
    if (json_as_str(v, 64, &s, e) < 0)
        return -1;
    if (!str_cut(s, ':', &word, &number))
        return parse_u64(s, JOB_ID_MAX, &out->job, e);
    for (int w = 0; w < AFTER_NEVER; w++)
        if (str_is(word, after_name((enum after_when)w))) {
            out->when = (enum after_when)w;
            return parse_u64(number, JOB_ID_MAX, &out->job, e);
        }
    err_set(e, ERR_INVALID, "'%.*s' is not a way to end", STR_ARG(word));
    return err_hint(e, "ok:17, any:17 or bad:17; 17 alone is ok:17");
}

int start_read_after(const struct json *v, uint64_t max, struct arena *a, struct spec *into,
                     struct err *e)
{
    bool list = json_is_array(v);
    size_t n = list ? json_len(v) : 1, i = 0;
    if (n > max)
        return err_set(e, ERR_INVALID, "has %zu jobs; at most %llu are allowed", n,
                       (unsigned long long)max);
    struct spec_after *after = arena_array(a, struct spec_after, n + 1);
    for (const struct json *at = list ? json_first(v) : v; at;
         at = list ? json_next(v, at) : NULL, i++) {
        if (read_one_after(at, &after[i], e) < 0)
            return list ? err_wrap(e, "part %zu", i + 1) : -1;
        if (after[i].job == 0)
            return err_set(e, ERR_INVALID, "there is no job 0");
    }
    into->after = after;
    into->n_after = (uint32_t)n;
    return 0;
}

void start_write_time(const char *key, int64_t ms, struct json_out *w)
{
    char text[32];
    if (ms)
        json_put_str(w, key, str_of(date_format(ms, text)));
}

void start_write_after(const char *key, const struct spec *s, struct json_out *w)
{
    if (s->n_after == 0)
        return;
    json_begin(w, key, '[');
    for (uint32_t i = 0; i < s->n_after; i++) {
        char text[48];
        snprintf(text, sizeof text, "%s:%llu", after_name(s->after[i].when),
                 (unsigned long long)s->after[i].job);
        json_put_str(w, NULL, str_of(text));
    }
    json_end(w, ']');
}
