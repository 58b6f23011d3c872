#include "cli/change.h"

#include "base/json.h"
#include "cli/table.h"
#include "cli/text.h"

#define VALUE_MAX (64u << 10)

/* ---- values ---- */

static bool is_time(struct str key)
{
    return key.n > 3 && memcmp(key.p + key.n - 3, "_ms", 3) == 0;
}

static void add_key(struct buf *out, struct str key)
{
    text_add_clean(out, (struct str){ key.p, key.n - (is_time(key) ? 3 : 0) });
}

static void add_value(struct buf *out, struct str key, const struct json *v);

/* pc1 pc2; the members of objects: open true, until 12:00 */
static void add_list(struct buf *out, const struct json *v)
{
    const char *between = "";
    for (const struct json *i = json_first(v); i; i = json_next(v, i)) {
        buf_addz(out, between);
        add_value(out, STR(""), i);
        between = " ";
    }
    if (!between[0])
        buf_addz(out, "none");
}

static void add_members(struct buf *out, const struct json *v)
{
    struct json_member m = { 0 };
    const char *between = "";
    buf_addc(out, '(');
    while (json_next_member(v, &m)) {
        buf_addz(out, between);
        add_key(out, m.key);
        buf_addc(out, ' ');
        add_value(out, m.key, m.value);
        between = ", ";
    }
    buf_addc(out, ')');
}

static void add_value(struct buf *out, struct str key, const struct json *v)
{
    char text[40], when[24];
    struct str s = STR("");
    bool yes = false;
    uint64_t ms;
    struct err e;
    switch (json_kind(v)) {
    case JSON_NULL: buf_addz(out, "-"); return;
    case JSON_BOOL:
        if (json_as_bool(v, &yes, &e) == 0)
            buf_addz(out, yes ? "yes" : "no");
        return;
    case JSON_NUMBER:
        json_number_text(v, text);
        if (is_time(key) && json_as_u64(v, INT64_MAX, &ms, &e) == 0)
            buf_addz(out, text_time((int64_t)ms, when));
        else
            buf_addz(out, text);
        return;
    case JSON_STRING:
        if (json_as_str(v, VALUE_MAX, &s, &e) == 0)
            text_add_clean(out, s);
        return;
    case JSON_ARRAY: add_list(out, v); return;
    case JSON_OBJECT: add_members(out, v); return;
    }
}

/* ---- what differs ---- */

struct pair {
    struct str key;
    const struct json *before, *after; /* NULL: it is not in that one */
};
typedef void pair_fn(void *ctx, const struct pair *p);

static bool differs(const struct pair *p)
{
    AUTO(buf_free) struct buf a = BUF(VALUE_MAX), b = BUF(VALUE_MAX);
    struct json_out wa = { .b = &a }, wb = { .b = &b };
    if (!p->before || !p->after)
        return true;
    json_put(&wa, NULL, p->before);
    json_put(&wb, NULL, p->after);
    return !str_eq(buf_str(&a), buf_str(&b));
}

/* Those of the first in its order, then what is in the second only. */
static void each_member(const struct json *before, const struct json *after, pair_fn *fn, void *ctx)
{
    struct json_member m = { 0 };
    while (json_is_object(before) && json_next_member(before, &m)) {
        struct pair p = { m.key, m.value,
                          json_is_object(after) ? json_find(after, m.key.p) : NULL };
        fn(ctx, &p);
    }
    m = (struct json_member){ 0 };
    while (json_is_object(after) && json_next_member(after, &m)) {
        struct pair p = { m.key, NULL, m.value };
        if (!json_is_object(before) || !json_find(before, m.key.p))
            fn(ctx, &p);
    }
}

struct telling {
    struct buf *out;
    bool one_side, colour;
    const char *between;
};

static void add_pair(void *ctx, const struct pair *p)
{
    struct telling *t = ctx;
    if (!differs(p))
        return;
    buf_addz(t->out, t->between);
    t->between = ", ";
    add_key(t->out, p->key);
    if (p->before || !t->one_side) {
        buf_addc(t->out, ' ');
        add_value(t->out, p->key, p->before);
    }
    if (!t->one_side)
        buf_addz(t->out, " →");
    if (p->after || !t->one_side) {
        buf_addc(t->out, ' ');
        add_value(t->out, p->key, p->after);
    }
}

static void add_line(struct telling *t, char sign, struct str key, const struct json *v)
{
    bool tinted = t->colour && sign != ' ';
    if (tinted)
        buf_addz(t->out, tint_begin(sign == '-' ? TINT_BAD : TINT_GOOD));
    buf_addc(t->out, sign);
    buf_addc(t->out, ' ');
    add_key(t->out, key);
    buf_addc(t->out, ' ');
    add_value(t->out, key, v);
    buf_addz(t->out, tinted ? TINT_END "\n" : "\n");
}

static void add_lines(void *ctx, const struct pair *p)
{
    struct telling *t = ctx;
    if (!differs(p)) {
        add_line(t, ' ', p->key, p->after);
        return;
    }
    if (p->before)
        add_line(t, '-', p->key, p->before);
    if (p->after)
        add_line(t, '+', p->key, p->after);
}

static void tell(struct telling *t, struct str before, struct str after, pair_fn *fn)
{
    struct err e;
    AUTO(json_free_p) struct json_doc *a = before.n ? json_read(before, &e) : NULL;
    AUTO(json_free_p) struct json_doc *b = after.n ? json_read(after, &e) : NULL;
    t->one_side = before.n == 0 || after.n == 0;
    t->between = "";
    each_member(a ? json_root(a) : NULL, b ? json_root(b) : NULL, fn, t);
}

void change_add_summary(struct buf *out, struct str before, struct str after)
{
    struct telling t = { .out = out };
    tell(&t, before, after, add_pair);
}

void change_add_lines(struct buf *out, struct str before, struct str after, bool colour)
{
    struct telling t = { .out = out, .colour = colour };
    tell(&t, before, after, add_lines);
}
