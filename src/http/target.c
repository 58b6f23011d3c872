#include "http/target.h"

enum mode {
    IN_PATH,
    IN_QUERY /* where '+' is a blank */
};

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The byte at s.p[*at], decoded, and *at moved past it; -1 when it is not one. */
static int next_byte(struct str s, size_t *at, enum mode mode)
{
    char c = s.p[(*at)++];
    if (c == '+' && mode == IN_QUERY)
        return ' ';
    if (c != '%')
        return (unsigned char)c;
    if (s.n - *at < 2)
        return -1;
    int high = hex_digit(s.p[*at]), low = hex_digit(s.p[*at + 1]);
    *at += 2;
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

static const char *decode(struct str s, enum mode mode, struct arena *a, struct err *e)
{
    char *out = arena_alloc(a, s.n + 1, 1); /* decoding never grows */
    size_t n = 0;
    for (size_t at = 0; at < s.n;) {
        int byte = next_byte(s, &at, mode);
        if (byte > 0) {
            out[n++] = (char)byte;
            continue;
        }
        err_set(e, ERR_INVALID, "'%.*s' %s", STR_ARG(s),
                byte == 0 ? "has a zero byte" : "has a % without two hexadecimal digits after it");
        err_hint(e, "write a percent sign as %%25");
        return NULL;
    }
    return out;
}

int target_parse_pairs(struct str text, struct arena *a, struct target *out, struct err *e)
{
    struct target t = { .path = out->path };
    size_t pieces = 1;
    for (size_t i = 0; i < text.n; i++)
        pieces += text.p[i] == '&';
    if (pieces > TARGET_PAIRS_MAX)
        return err_set(e, ERR_INVALID, "the query has %zu parts; the limit is %d", pieces,
                       TARGET_PAIRS_MAX);
    t.query = arena_array(a, struct target_pair, pieces);
    while (text.n > 0) {
        struct str piece, key, value;
        str_cut(text, '&', &piece, &text);
        if (piece.n == 0)
            continue;
        str_cut(piece, '=', &key, &value);
        struct target_pair *pair = &t.query[t.n++];
        pair->key = decode(key, IN_QUERY, a, e);
        pair->value = pair->key ? decode(value, IN_QUERY, a, e) : NULL;
        if (!pair->value)
            return -1;
    }
    *out = t;
    return 0;
}

int target_parse(struct str text, struct arena *a, struct target *out, struct err *e)
{
    struct target t = { 0 };
    struct str path, query;
    if (text.n > TARGET_MAX)
        return err_set(e, ERR_TOO_LARGE, "the address has %zu bytes; the limit is %d", text.n,
                       TARGET_MAX);
    if (text.n == 0 || text.p[0] != '/')
        return err_set(e, ERR_INVALID, "'%.*s' does not begin with '/'", STR_ARG(text));
    bool asks = str_cut(text, '?', &path, &query);
    t.path = decode(path, IN_PATH, a, e);
    if (!t.path || (asks && target_parse_pairs(query, a, &t, e) < 0))
        return -1;
    *out = t;
    return 0;
}

const char *target_find(const struct target *t, const char *key)
{
    for (size_t i = 0; i < t->n; i++)
        if (strcmp(t->query[i].key, key) == 0)
            return t->query[i].value;
    return NULL;
}

bool target_next(const struct target *t, size_t i, const char **key, const char **value)
{
    if (i >= t->n)
        return false;
    *key = t->query[i].key;
    *value = t->query[i].value;
    return true;
}
