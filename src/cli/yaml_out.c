#include "cli/yaml_out.h"

#include <strings.h>

#define DEPTH_MAX 64

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Words that some reader of YAML takes for something else than text. */
static bool is_word(struct str s)
{
    static const char *const words[] = {
        "true", "false", "null", "yes", "no", "on", "off", "y", "n"
    };
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (s.n == strlen(words[i]) && strncasecmp(s.p, words[i], s.n) == 0)
            return true;
    return false;
}

/* Text that YAML takes for text without quotes: a letter first, nothing special after it. */
static bool is_plain(struct str s)
{
    if (s.n == 0 || !(is_letter(s.p[0]) || s.p[0] == '/' || s.p[0] == '_'))
        return false;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool digit = c >= '0' && c <= '9';
        if (c == '\0' || !(is_letter(c) || digit || strchr("_-./ +=@()", c)))
            return false;
    }
    return s.p[s.n - 1] != ' ' && !is_word(s);
}

/* JSON's quotes are YAML's double quotes. */
static void add_text(struct buf *out, struct str s)
{
    struct json_out w = { .b = out };
    if (is_plain(s))
        buf_add(out, s);
    else
        json_put_str(&w, NULL, s);
}

static void add_scalar(struct buf *out, const struct json *v)
{
    struct json_out w = { .b = out };
    struct str s = { "", 0 };
    struct err e;
    if (json_kind(v) == JSON_STRING && json_as_str(v, SIZE_MAX, &s, &e) == 0)
        add_text(out, s);
    else
        json_put(&w, NULL, v);
}

static bool is_block(const struct json *v)
{
    struct json_member m = { 0 };
    return (json_is_object(v) && json_next_member(v, &m)) || (json_is_array(v) && json_first(v));
}

static void add_value(struct buf *out, const struct json *v, int depth);

/* Behind "key:" or "-": on the same line what is short, below it what is not. */
static void add_below(struct buf *out, const struct json *v, int depth)
{
    if (is_block(v) && depth < DEPTH_MAX) {
        buf_addc(out, '\n');
        add_value(out, v, depth);
        return;
    }
    buf_addc(out, ' ');
    add_scalar(out, v);
    buf_addc(out, '\n');
}

/* A list's element that is an object begins on the line of its dash. */
static void add_members(struct buf *out, const struct json *v, int depth, bool first_is_led)
{
    for (struct json_member m = { 0 }; json_next_member(v, &m); first_is_led = false) {
        buf_printf(out, "%*s", first_is_led ? 0 : depth * 2, "");
        add_text(out, m.key);
        buf_addc(out, ':');
        add_below(out, m.value, depth + 1);
    }
}

static void add_value(struct buf *out, const struct json *v, int depth)
{
    if (json_is_object(v)) {
        add_members(out, v, depth, false);
        return;
    }
    for (const struct json *i = json_first(v); i; i = json_next(v, i)) {
        buf_printf(out, "%*s-", depth * 2, "");
        if (json_is_object(i) && is_block(i)) {
            buf_addc(out, ' ');
            add_members(out, i, depth + 1, true);
        } else {
            add_below(out, i, depth + 1);
        }
    }
}

void yaml_print(const struct json *v, struct buf *out)
{
    if (is_block(v)) {
        add_value(out, v, 0);
        return;
    }
    add_scalar(out, v);
    buf_addc(out, '\n');
}
