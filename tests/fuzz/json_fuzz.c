/* Walks every document that reads, copies it through the writer, and reads the copy: the second
 * copy must be the first, byte for byte. */
#include "base/json.h"
#include "tests/fuzz/target.h"

#define DEPTH_MAX 64
#define FANOUT_MAX 1000u

static void copy_value(struct json_out *w, const struct json *v, int depth);

static void copy_array(struct json_out *w, const struct json *arr, int depth)
{
    size_t n = 0;
    json_begin(w, NULL, '[');
    for (const struct json *v = json_first(arr); v && n < FANOUT_MAX; v = json_next(arr, v), n++)
        copy_value(w, v, depth + 1);
    if (n < FANOUT_MAX && n != json_len(arr))
        abort();
    json_end(w, ']');
}

/* The interface looks objects up by known keys only, so a few are known here. */
static void copy_object(struct json_out *w, const struct json *obj)
{
    static const char *const keys[] = { "gpus", "name", "share", "on", "a" };
    struct err e = { 0 };
    uint64_t u = 0;
    int64_t i = 0;
    double f = 0;
    bool b = false;
    struct str s = STR("");
    if (json_only(obj, keys, ARRAY_LEN(keys), &e) < 0 && !e.msg[0])
        abort();
    /* A field that is missing or wrong keeps its output, and is written as that. */
    bool ok = json_get_u64(obj, "gpus", 64, &u, &e) == 0;
    ok &= json_get_str(obj, "name", 1000, &s, &e) == 0;
    ok &= json_get_f64(obj, "share", 0, 1, &f, &e) == 0;
    ok &= json_get_bool(obj, "on", &b, &e) == 0;
    ok &= json_get_i64(obj, "a", -9, 9, &i, &e) == 0;
    if (!ok && !e.msg[0])
        abort();
    if (u > 64 || i < -9 || i > 9 || f < 0 || f > 1 || s.n > 1000)
        abort();
    json_begin(w, NULL, '{');
    json_put_u64(w, "gpus", u);
    json_put_str(w, "name", s);
    json_put_f64(w, "share", f, 3);
    json_put_bool(w, "on", b);
    json_put_i64(w, "a", i);
    json_end(w, '}');
}

static void copy_value(struct json_out *w, const struct json *v, int depth)
{
    struct err e = { 0 };
    uint64_t u;
    struct str s;
    if (json_is_array(v) && depth < DEPTH_MAX)
        copy_array(w, v, depth);
    else if (json_is_object(v))
        copy_object(w, v);
    else if (json_as_u64(v, UINT64_MAX, &u, &e) == 0)
        json_put_u64(w, NULL, u);
    else if (json_as_str(v, 100000, &s, &e) == 0)
        json_put_str(w, NULL, s);
    else
        json_put_null(w, NULL);
}

static bool copy_text(struct str text, int indent, struct buf *out)
{
    struct err e = { 0 };
    AUTO(json_free_p) struct json_doc *d = json_read(text, &e);
    if (!d)
        return false;
    struct json_out w = { .b = out, .indent = indent };
    copy_value(&w, json_root(d), 0);
    return true;
}

FUZZ_TARGET(data, size)
{
    AUTO(buf_free) struct buf one = BUF(1 << 20), two = BUF(1 << 20);
    if (!copy_text((struct str){ (const char *)data, size }, size % 3 ? 2 : 0, &one) || one.full)
        return 0;
    if (!copy_text(buf_str(&one), size % 3 ? 2 : 0, &two) || !str_eq(buf_str(&one), buf_str(&two)))
        abort(); /* what we write must read, and mean the same */
    return 0;
}
