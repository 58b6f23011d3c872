/* The part of json.h for documents whose fields are not known beforehand. */
#include <yyjson.h>

#include "base/json.h"

#define DEPTH_MAX 100

static yyjson_val *val(const struct json *v)
{
    return (yyjson_val *)(uintptr_t)v;
}

enum json_kind json_kind(const struct json *v)
{
    if (yyjson_is_obj(val(v)))
        return JSON_OBJECT;
    if (yyjson_is_arr(val(v)))
        return JSON_ARRAY;
    if (yyjson_is_str(val(v)))
        return JSON_STRING;
    if (yyjson_is_num(val(v)))
        return JSON_NUMBER;
    return yyjson_is_bool(val(v)) ? JSON_BOOL : JSON_NULL;
}

bool json_next_member(const struct json *obj, struct json_member *m)
{
    if (!yyjson_is_obj(val(obj)) || yyjson_obj_size(val(obj)) == 0)
        return false;
    yyjson_val *key, *last = unsafe_yyjson_get_next(val(obj));
    key = m->value ? unsafe_yyjson_get_next(val(m->value)) : unsafe_yyjson_get_first(val(obj));
    if (key >= last)
        return false;
    m->key = (struct str){ yyjson_get_str(key), yyjson_get_len(key) };
    m->value = (const struct json *)yyjson_obj_iter_get_val(key);
    return true;
}

/* A number is written as yyjson writes it: whole ones exactly, others with the digits they need. */
void json_number_text(const struct json *v, char out[static 40])
{
    size_t n = 0;
    char *text = yyjson_val_write(val(v), 0, &n);
    n = text ? MIN(n, (size_t)39) : 0;
    memcpy(out, text ? text : "", n);
    out[n] = '\0';
    free(text);
}

static void put_members(struct json_out *w, const struct json *v)
{
    for (struct json_member m = { 0 }; json_next_member(v, &m);)
        json_put(w, m.key.p, m.value);
}

void json_put(struct json_out *w, const char *key, const struct json *v)
{
    struct str s = { "", 0 };
    struct err e;
    char number[40];
    enum json_kind kind = w->depth < DEPTH_MAX ? json_kind(v) : JSON_NULL;
    switch (kind) {
    case JSON_NULL: json_put_null(w, key); break;
    case JSON_BOOL: json_put_bool(w, key, yyjson_get_bool(val(v))); break;
    case JSON_NUMBER:
        json_number_text(v, number);
        json_put_raw(w, key, str_of(number));
        break;
    case JSON_STRING:
        (void)!json_as_str(v, SIZE_MAX, &s, &e);
        json_put_str(w, key, s);
        break;
    case JSON_ARRAY:
        json_begin(w, key, '[');
        for (const struct json *i = json_first(v); i; i = json_next(v, i))
            json_put(w, NULL, i);
        json_end(w, ']');
        break;
    case JSON_OBJECT:
        json_begin(w, key, '{');
        put_members(w, v);
        json_end(w, '}');
        break;
    }
}
