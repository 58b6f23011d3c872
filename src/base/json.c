#include "base/json.h"

#include <stdio.h>
#include <yyjson.h>

/* struct json and struct json_doc are yyjson's own under a name that leaves yyjson out of every
 * other file. */
static yyjson_val *val(const struct json *v)
{
    return (yyjson_val *)(uintptr_t)v;
}

static const struct json *json_of(yyjson_val *v)
{
    return (const struct json *)v;
}

struct json_doc *json_read(struct str text, struct err *e)
{
    yyjson_read_err why = { 0 };
    /* Without the "insitu" flag yyjson copies the text before it touches it. */
    char *p = (char *)(uintptr_t)text.p;
    yyjson_doc *d = text.n ? yyjson_read_opts(p, text.n, 0, NULL, &why) : NULL;
    if (d)
        return (struct json_doc *)d;
    if (text.n == 0) {
        err_set(e, ERR_INVALID, "the JSON text is empty");
        return NULL;
    }
    size_t line = 1, column = 1;
    for (size_t i = 0; i < why.pos && i < text.n; i++) {
        line += text.p[i] == '\n';
        column = text.p[i] == '\n' ? 1 : column + 1;
    }
    err_set(e, ERR_INVALID, "not valid JSON: line %zu, column %zu: %s", line, column, why.msg);
    err_hint(e, "check for a missing quote, comma or bracket just before that place");
    return NULL;
}

struct json_doc *json_free(struct json_doc *d)
{
    yyjson_doc_free((yyjson_doc *)d);
    return NULL;
}

void json_free_p(struct json_doc **d)
{
    *d = json_free(*d);
}

const struct json *json_root(const struct json_doc *d)
{
    return json_of(yyjson_doc_get_root((yyjson_doc *)(uintptr_t)d));
}

bool json_is_object(const struct json *v)
{
    return yyjson_is_obj(val(v));
}

bool json_is_array(const struct json *v)
{
    return yyjson_is_arr(val(v));
}

bool json_is_string(const struct json *v)
{
    return yyjson_is_str(val(v));
}

bool json_is_number(const struct json *v)
{
    return yyjson_is_num(val(v));
}

bool json_is_null(const struct json *v)
{
    return yyjson_is_null(val(v));
}

size_t json_members(const struct json *obj)
{
    return yyjson_obj_size(val(obj));
}

const struct json *json_find(const struct json *obj, const char *key)
{
    return json_of(yyjson_obj_get(val(obj), key));
}

size_t json_len(const struct json *arr)
{
    return yyjson_arr_size(val(arr));
}

const struct json *json_at(const struct json *arr, size_t i)
{
    return json_of(yyjson_arr_get(val(arr), i));
}

const struct json *json_first(const struct json *arr)
{
    return json_of(yyjson_arr_get_first(val(arr)));
}

/* The values of a document lie in one block; past the last element lies what follows the array. */
const struct json *json_next(const struct json *arr, const struct json *prev)
{
    yyjson_val *next = unsafe_yyjson_get_next(val(prev));
    return next < unsafe_yyjson_get_next(val(arr)) ? json_of(next) : NULL;
}

static size_t edit_distance(struct str a, struct str b)
{
    size_t row[40];
    if (b.n >= ARRAY_LEN(row) || a.n >= ARRAY_LEN(row))
        return ARRAY_LEN(row);
    for (size_t j = 0; j <= b.n; j++)
        row[j] = j;
    for (size_t i = 1; i <= a.n; i++) {
        size_t corner = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b.n; j++) {
            size_t best = corner + (a.p[i - 1] != b.p[j - 1]);
            corner = row[j];
            best = MIN(best, corner + 1);
            row[j] = MIN(best, row[j - 1] + 1);
        }
    }
    return row[b.n];
}

static int unknown_key(struct str key, const char *const *keys, size_t n, struct err *e)
{
    size_t best = n, distance = key.n / 3 + 2;
    for (size_t i = 0; i < n; i++) {
        size_t d = edit_distance(key, str_of(keys[i]));
        if (d < distance) {
            distance = d;
            best = i;
        }
    }
    err_set(e, ERR_INVALID, "unknown field '%.*s'", (int)MIN(key.n, (size_t)60), key.p);
    if (best < n)
        return err_hint(e, "did you mean '%s'?", keys[best]);
    AUTO(buf_free) struct buf all = BUF(160);
    for (size_t i = 0; i < n; i++)
        buf_printf(&all, "%s%s", i ? ", " : "", keys[i]);
    return err_hint(e, "known fields: %s%s", buf_str(&all).p, all.full ? ", ..." : "");
}

/* "a string", "an object", "null"; yyjson's own names tell apart what people do not. */
static const char *kind_of(yyjson_val *v)
{
    return yyjson_is_obj(v)  ? "an object"
         : yyjson_is_arr(v)  ? "an array"
         : yyjson_is_str(v)  ? "a string"
         : yyjson_is_num(v)  ? "a number"
         : yyjson_is_bool(v) ? "a boolean"
                             : "null";
}

static bool is_listed(struct str key, const char *const *keys, size_t n)
{
    size_t i = 0;
    while (i < n && !str_is(key, keys[i]))
        i++;
    return i < n;
}

struct str json_odd_key(const struct json *obj, const char *const *keys, size_t n)
{
    yyjson_obj_iter it = yyjson_obj_iter_with(val(obj));
    for (yyjson_val *k; (k = yyjson_obj_iter_next(&it));) {
        struct str key = { yyjson_get_str(k), yyjson_get_len(k) };
        if (!is_listed(key, keys, n) ||
            yyjson_obj_getn(val(obj), key.p, key.n) != yyjson_obj_iter_get_val(k))
            return key;
    }
    return (struct str){ 0 };
}

int json_only(const struct json *obj, const char *const *keys, size_t n, struct err *e)
{
    if (!json_is_object(obj)) {
        err_set(e, ERR_INVALID, "must be an object, not %s", kind_of(val(obj)));
        return err_hint(e, "write it like {\"%s\": ...}", n ? keys[0] : "key");
    }
    struct str odd = json_odd_key(obj, keys, n);
    if (!odd.p)
        return 0;
    if (!is_listed(odd, keys, n))
        return unknown_key(odd, keys, n, e);
    err_set(e, ERR_INVALID, "field '%.*s' is given twice", STR_ARG(odd));
    return err_hint(e, "give it once");
}

/* "must be a string, not a number"; a number out of range is just "must be a … from … to …". */
static int wrong(yyjson_val *v, const char *want, struct err *e)
{
    if (yyjson_is_num(v))
        return err_set(e, ERR_INVALID, "must be %s", want);
    return err_set(e, ERR_INVALID, "must be %s, not %s", want, kind_of(v));
}

/* 2.0 is a whole number too: JSON has one kind of number, and some writers have only floats. */
static bool whole(yyjson_val *v, uint64_t *out)
{
    double real = yyjson_is_real(v) ? yyjson_get_real(v) : -1;
    if (yyjson_is_uint(v))
        *out = yyjson_get_uint(v);
    else if (real >= 0 && real <= 9007199254740991.0 && real == (double)(uint64_t)real)
        *out = (uint64_t)real;
    else
        return false;
    return true;
}

int json_as_u64(const struct json *v, uint64_t max, uint64_t *out, struct err *e)
{
    uint64_t n;
    if (whole(val(v), &n) && n <= max) {
        *out = n;
        return 0;
    }
    char want[64];
    snprintf(want, sizeof want, "a whole number from 0 to %llu", (unsigned long long)max);
    return wrong(val(v), want, e);
}

static int as_i64(const struct json *v, int64_t min, int64_t max, int64_t *out, struct err *e)
{
    bool fits =
        yyjson_is_sint(val(v)) || (yyjson_is_uint(val(v)) && yyjson_get_uint(val(v)) <= INT64_MAX);
    int64_t got = fits ? yyjson_get_sint(val(v)) : 0;
    if (fits && got >= min && got <= max) {
        *out = got;
        return 0;
    }
    char want[80];
    snprintf(want, sizeof want, "a whole number from %lld to %lld", (long long)min, (long long)max);
    return wrong(val(v), want, e);
}

int json_as_f64(const struct json *v, double min, double max, double *out, struct err *e)
{
    double got = yyjson_get_num(val(v));
    if (yyjson_is_num(val(v)) && got >= min && got <= max) {
        *out = got;
        return 0;
    }
    char want[80];
    snprintf(want, sizeof want, "a number from %g to %g", min, max);
    return wrong(val(v), want, e);
}

int json_as_str(const struct json *v, size_t max, struct str *out, struct err *e)
{
    if (!yyjson_is_str(val(v))) {
        err_set(e, ERR_INVALID, "must be a string, not %s", kind_of(val(v)));
        return err_hint(e, "put it in double quotes");
    }
    struct str s = { yyjson_get_str(val(v)), yyjson_get_len(val(v)) };
    if (s.n > max) {
        err_set(e, ERR_INVALID, "has %zu bytes; at most %zu are allowed", s.n, max);
        return err_hint(e, "make it shorter");
    }
    *out = s;
    return 0;
}

int json_as_bool(const struct json *v, bool *out, struct err *e)
{
    if (!yyjson_is_bool(val(v)))
        return err_set(e, ERR_INVALID, "must be true or false");
    *out = yyjson_get_bool(val(v));
    return 0;
}

static int in_field(int rc, const char *key, struct err *e)
{
    return rc < 0 ? err_wrap(e, "field '%s'", key) : 0;
}

static int need(const struct json *obj, const char *key, struct err *e)
{
    if (json_find(obj, key))
        return 0;
    err_set(e, ERR_INVALID, "field '%s' is missing", key);
    return err_hint(e, "add \"%s\": ...", key);
}

int json_get_u64(const struct json *obj, const char *key, uint64_t max, uint64_t *out,
                 struct err *e)
{
    const struct json *v = json_find(obj, key);
    return v ? in_field(json_as_u64(v, max, out, e), key, e) : 0;
}

int json_get_i64(const struct json *obj, const char *key, int64_t min, int64_t max, int64_t *out,
                 struct err *e)
{
    const struct json *v = json_find(obj, key);
    return v ? in_field(as_i64(v, min, max, out, e), key, e) : 0;
}

int json_get_f64(const struct json *obj, const char *key, double min, double max, double *out,
                 struct err *e)
{
    const struct json *v = json_find(obj, key);
    return v ? in_field(json_as_f64(v, min, max, out, e), key, e) : 0;
}

int json_get_bool(const struct json *obj, const char *key, bool *out, struct err *e)
{
    const struct json *v = json_find(obj, key);
    return v ? in_field(json_as_bool(v, out, e), key, e) : 0;
}

int json_get_str(const struct json *obj, const char *key, size_t max, struct str *out,
                 struct err *e)
{
    const struct json *v = json_find(obj, key);
    return v ? in_field(json_as_str(v, max, out, e), key, e) : 0;
}

int json_need_u64(const struct json *obj, const char *key, uint64_t max, uint64_t *out,
                  struct err *e)
{
    return need(obj, key, e) < 0 ? -1 : json_get_u64(obj, key, max, out, e);
}

int json_need_i64(const struct json *obj, const char *key, int64_t min, int64_t max, int64_t *out,
                  struct err *e)
{
    return need(obj, key, e) < 0 ? -1 : json_get_i64(obj, key, min, max, out, e);
}

int json_need_str(const struct json *obj, const char *key, size_t max, struct str *out,
                  struct err *e)
{
    return need(obj, key, e) < 0 ? -1 : json_get_str(obj, key, max, out, e);
}
