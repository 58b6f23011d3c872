#include "cli/words.h"

#include <stdlib.h>

#include "cli/text.h"

void words_put_list(struct json_out *w, const char *key, const char *text)
{
    struct str rest = str_of(text ? text : ""), word;
    if (!text)
        return;
    if (!rest.n) {
        json_put_null(w, key);
        return;
    }
    json_begin(w, key, '[');
    while (rest.n) {
        str_cut(rest, ',', &word, &rest);
        json_put_str(w, NULL, str_trim(word));
    }
    json_end(w, ']');
}

void words_put_text(struct json_out *w, const char *key, const char *text)
{
    if (text && text[0])
        json_put_str(w, key, str_of(text));
    else if (text)
        json_put_null(w, key);
}

static bool is_number(const char *text)
{
    char *end;
    size_t n = strspn(text, "0123456789.");
    if (n == 0 || text[n])
        return false;
    (void)strtod(text, &end);
    return *end == '\0' && text[0] != '.' && text[n - 1] != '.' &&
           (text[0] != '0' || n == 1 || text[1] == '.');
}

int words_put_number(struct json_out *w, const char *key, const char *text, struct err *e)
{
    if (!text)
        return 0;
    if (text[0] && !is_number(text)) {
        err_set(e, ERR_INVALID, "--%s: '%.60s' is not a number", key, text);
        return err_hint(e, "e.g. --%s 2; '' is as if it had never been said", key);
    }
    if (text[0])
        json_put_raw(w, key, str_of(text));
    else
        json_put_null(w, key);
    return 0;
}

int words_put_pairs(struct json_out *w, const char *option, const char *text, struct err *e)
{
    struct str rest = str_of(text), pair, key, value;
    AUTO(arena_free) struct arena a = { 0 };
    while (rest.n) {
        str_cut(rest, ',', &pair, &rest);
        if (!str_cut(str_trim(pair), '=', &key, &value) || key.n == 0) {
            err_set(e, ERR_INVALID, "--%s: '%.*s' is not NAME=VALUE", option,
                    (int)MIN(pair.n, (size_t)60), pair.p);
            return err_hint(e, "see nightshift tenants --help");
        }
        const char *name = arena_strndup(&a, key.p, key.n);
        const char *v = arena_strndup(&a, value.p, value.n);
        if (is_number(v))
            json_put_raw(w, name, str_of(v));
        else
            words_put_text(w, name, v);
    }
    return 0;
}

void words_add(struct buf *b, const struct json *list)
{
    struct err e;
    struct str s;
    const char *comma = "";
    for (const struct json *i = json_is_array(list) ? json_first(list) : NULL; i;
         i = json_next(list, i)) {
        if (json_as_str(i, 4096, &s, &e) < 0)
            continue;
        buf_addz(b, comma);
        text_add_clean(b, s);
        comma = ", ";
    }
}

void words_add_number(struct buf *b, const struct json *v)
{
    struct err e;
    double x = 0;
    if (json_as_f64(v, -1e15, 1e15, &x, &e) == 0)
        buf_printf(b, "%.15g", x);
}

void words_add_pairs(struct buf *b, const struct json *obj)
{
    struct err e;
    struct str s;
    const char *comma = "";
    for (struct json_member m = { 0 }; json_next_member(obj, &m); comma = ", ") {
        buf_addz(b, comma);
        text_add_clean(b, m.key);
        buf_addc(b, '=');
        if (json_is_number(m.value)) {
            words_add_number(b, m.value);
        } else if (json_is_object(m.value)) {
            buf_addc(b, '(');
            words_add_pairs(b, m.value);
            buf_addc(b, ')');
        } else if (json_is_string(m.value) && json_as_str(m.value, 4096, &s, &e) == 0) {
            text_add_clean(b, s);
        }
    }
}
