#include "engine/kube/doc.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/date.h"

int doc_fail(struct doc *d, const char *fmt, ...)
{
    char text[200];
    va_list ap;
    if (d->bad)
        return -1;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    d->bad = true;
    return err_set(d->e, ERR_INVALID, "%s", text);
}

static const struct json *find(const struct json *o, const char *key)
{
    const struct json *v = json_find(o, key);
    return json_is_null(v) ? NULL : v;
}

static bool has_control(struct str s)
{
    size_t i = 0;
    while (i < s.n && (unsigned char)s.p[i] >= ' ')
        i++;
    return i < s.n;
}

const char *doc_as_text(struct doc *d, const struct json *v, const char *what)
{
    struct str s;
    struct err e;
    if (!v)
        return "";
    if (json_as_str(v, DOC_TEXT_MAX, &s, &e) < 0)
        doc_fail(d, "field '%s': %s", what, e.msg);
    else if (has_control(s))
        doc_fail(d, "field '%s' has a control character", what);
    else
        return s.p;
    return "";
}

const char *doc_text(struct doc *d, const struct json *o, const char *key)
{
    return doc_as_text(d, find(o, key), key);
}

const char *doc_said(const struct json *o, const char *key)
{
    struct err e;
    struct doc d = { .e = &e };
    return doc_text(&d, o, key);
}

const char *doc_prose(struct doc *d, const struct json *o, const char *key, size_t max,
                      struct arena *a)
{
    const struct json *v = find(o, key);
    struct str s;
    struct err e;
    if (!v)
        return "";
    if (json_as_str(v, SIZE_MAX, &s, &e) < 0) {
        doc_fail(d, "field '%s': %s", key, e.msg);
        return "";
    }
    size_t n = MIN(s.n, max);
    while (n < s.n && n > 0 && ((unsigned char)s.p[n] & 0xc0) == 0x80)
        n--; /* not in the middle of a character */
    char *copy = arena_strndup(a, s.p, n);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)copy[i] < ' ')
            copy[i] = ' ';
    return copy;
}

int64_t doc_int(struct doc *d, const struct json *o, const char *key, int64_t when_absent)
{
    struct err e;
    int64_t n = when_absent;
    if (find(o, key) && json_get_i64(o, key, INT64_MIN, INT64_MAX, &n, &e) < 0)
        doc_fail(d, "%s", e.msg);
    return n;
}

int32_t doc_i32(struct doc *d, const struct json *o, const char *key)
{
    int64_t n = doc_int(d, o, key, 0);
    if (n == (int32_t)n)
        return (int32_t)n;
    doc_fail(d, "field '%s' is out of bounds", key);
    return 0;
}

bool doc_bool(struct doc *d, const struct json *o, const char *key)
{
    struct err e;
    bool yes = false;
    if (find(o, key) && json_get_bool(o, key, &yes, &e) < 0)
        doc_fail(d, "%s", e.msg);
    return yes;
}

int64_t doc_time_ms(struct doc *d, const struct json *o, const char *key)
{
    const char *text = doc_text(d, o, key);
    struct err e;
    int64_t ms = 0;
    /* The year 1 is how Go writes a time that was never set. */
    if (text[0] && strncmp(text, "0001-", 5) != 0 && date_parse(str_of(text), &ms, &e) < 0)
        doc_fail(d, "field '%s': %s", key, e.msg);
    return ms;
}

const struct json *doc_object(struct doc *d, const struct json *o, const char *key)
{
    const struct json *v = find(o, key);
    if (!v || json_is_object(v))
        return v;
    doc_fail(d, "field '%s' must be an object", key);
    return NULL;
}

const struct json *doc_array(struct doc *d, const struct json *o, const char *key)
{
    const struct json *v = find(o, key);
    if (v && !json_is_array(v))
        doc_fail(d, "field '%s' must be an array", key);
    else if (json_len(v) > DOC_LIST_MAX)
        doc_fail(d, "field '%s' has more than %d entries", key, DOC_LIST_MAX);
    else
        return v;
    return NULL;
}

bool doc_has(const struct json *o, const char *key)
{
    const struct json *v = find(o, key);
    return v && !(json_is_array(v) && json_len(v) == 0) &&
           !(json_is_object(v) && json_members(v) == 0);
}

const struct json *doc_find_by(const struct json *list, const char *key, const char *text)
{
    DOC_EACH(v, list)
    {
        struct str s;
        struct err e;
        const struct json *name = json_find(v, key);
        if (name && json_as_str(name, DOC_TEXT_MAX, &s, &e) == 0 && str_is(s, text))
            return v;
    }
    return NULL;
}
