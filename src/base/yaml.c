#include "base/yaml.h"

#include <float.h>
#include <stdarg.h>
#include <stdio.h>
#include <yaml.h>

#include "base/map.h"
#include "base/parse.h"

#define NUMBER_MAX 256 /* bytes of a number; longer ones are text */
#define QUOTE(s) (int)((s).n > 60 ? 60 : (s).n), (s).p

/* A mapping or a sequence that is still open. */
struct level {
    bool mapping, key_read; /* key_read: the value of the last key comes next */
    size_t n;               /* keys or items so far */
    struct names keys;
    size_t *line; /* of each key */
    size_t n_lines, cap_lines;
};

struct reader {
    yaml_parser_t parser;
    struct buf *out;
    struct level level[YAML_DEPTH_MAX];
    size_t depth, values, documents;
    size_t line; /* of the event at hand, from 1 */
};

static int PRINTF_LIKE(3, 4) bad(const struct reader *r, struct err *e, const char *fmt, ...)
{
    char text[sizeof e->msg];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return err_set(e, ERR_INVALID, "line %zu: %s", r->line, text);
}

static void level_clear(struct level *l)
{
    names_free(&l->keys);
    free(l->line);
    *l = (struct level){ 0 };
}

static void reader_clear(struct reader *r)
{
    yaml_parser_delete(&r->parser);
    while (r->depth)
        level_clear(&r->level[--r->depth]);
}

static void event_clear(yaml_event_t *ev)
{
    yaml_event_delete(ev);
}

static void reader_init(struct reader *r, struct str text, struct buf *out)
{
    *r = (struct reader){ .out = out };
    if (!yaml_parser_initialize(&r->parser))
        abort(); /* out of memory */
    yaml_parser_set_encoding(&r->parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r->parser, (const unsigned char *)text.p, text.n);
}

/* What libyaml says of the mistakes people make, and what mends them. */
static const struct {
    const char *problem, *hint;
} problem_hints[] = {
    { "mapping values are not allowed", "put a text that has ': ' in it in quotes" },
    { "cannot start any token", "indent with blanks, never tabs; quote texts with @ ` % in front" },
    { "did not find expected key", "keys of one mapping begin in the same column" },
    { "did not find expected '-'", "items of one list begin in the same column" },
    { "could not find expected ':'", "a key ends with ':' and a blank" },
    { "found unexpected end of stream", "a quote is not closed" },
    { "did not find expected ','", "a bracket is not closed, or a comma is missing" },
    { "unknown escape character", "in double quotes write \\\\ for \\, or use single quotes" },
    { "UTF-8", "save the file as UTF-8" },
    { "control characters are not allowed", "save the file as UTF-8 text" },
};

static int parse_failed(const struct reader *r, struct err *e)
{
    const yaml_parser_t *p = &r->parser;
    const char *problem = p->problem ? p->problem : "cannot be read";
    if (p->error == YAML_MEMORY_ERROR)
        abort();
    if (p->error == YAML_READER_ERROR)
        err_set(e, ERR_INVALID, "not valid YAML: byte %zu: %s", p->problem_offset + 1, problem);
    else
        err_set(e, ERR_INVALID, "not valid YAML: line %zu, column %zu: %s",
                p->problem_mark.line + 1, p->problem_mark.column + 1, problem);
    for (size_t i = 0; i < ARRAY_LEN(problem_hints); i++)
        if (strstr(problem, problem_hints[i].problem))
            return err_hint(e, "%s", problem_hints[i].hint);
    return err_hint(e, "look at that line and the one before it");
}

enum scalar {
    SCALAR_TEXT,
    SCALAR_NULL,
    SCALAR_BOOL,
    SCALAR_NUMBER
};

static const char *const scalar_names[] = {
    [SCALAR_TEXT] = "text",
    [SCALAR_NULL] = "null",
    [SCALAR_BOOL] = "true or false",
    [SCALAR_NUMBER] = "a number",
};

static const struct {
    const char *word, *json;
    enum scalar kind;
} words[] = {
    { "", "null", SCALAR_NULL },       { "~", "null", SCALAR_NULL },
    { "null", "null", SCALAR_NULL },   { "Null", "null", SCALAR_NULL },
    { "NULL", "null", SCALAR_NULL },   { "true", "true", SCALAR_BOOL },
    { "True", "true", SCALAR_BOOL },   { "TRUE", "true", SCALAR_BOOL },
    { "false", "false", SCALAR_BOOL }, { "False", "false", SCALAR_BOOL },
    { "FALSE", "false", SCALAR_BOOL },
};

static size_t digits_at(struct str s, size_t i)
{
    size_t n = 0;
    while (i + n < s.n && s.p[i + n] >= '0' && s.p[i + n] <= '9')
        n++;
    return n;
}

static int digit_value(char c)
{
    return c >= '0' && c <= '9' ? c - '0'
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                : 99;
}

/* 0x1f and 0o17. */
static bool based_number(struct str s, char out[static NUMBER_MAX])
{
    if (s.n < 3 || s.p[0] != '0' || (s.p[1] != 'x' && s.p[1] != 'o'))
        return false;
    unsigned base = s.p[1] == 'x' ? 16 : 8;
    uint64_t v = 0;
    for (size_t i = 2; i < s.n; i++) {
        unsigned d = (unsigned)digit_value(s.p[i]);
        if (d >= base || __builtin_mul_overflow(v, base, &v) || __builtin_add_overflow(v, d, &v))
            return false;
    }
    snprintf(out, NUMBER_MAX, "%llu", (unsigned long long)v);
    return true;
}

/* [+-]digits without a leading zero, within 64 bits. */
static bool whole_number(bool minus, struct str digits, char out[static NUMBER_MAX])
{
    struct err ignored;
    uint64_t u;
    if (parse_u64(digits, minus ? (uint64_t)INT64_MAX + 1 : UINT64_MAX, &u, &ignored) < 0)
        return false;
    snprintf(out, NUMBER_MAX, "%s%llu", minus && u ? "-" : "", (unsigned long long)u);
    return true;
}

/* [+-]digits[.digits][e[+-]digits] and [+-].digits…, as JSON spells them. */
static bool number(struct str s, char out[static NUMBER_MAX])
{
    bool sign = s.n && (s.p[0] == '-' || s.p[0] == '+'), minus = sign && s.p[0] == '-';
    struct str rest = sign ? (struct str){ s.p + 1, s.n - 1 } : s;
    size_t whole = digits_at(rest, 0);
    if (s.n > NUMBER_MAX - 8 || (whole > 1 && rest.p[0] == '0'))
        return false;
    if (whole && whole == rest.n)
        return whole_number(minus, rest, out);
    bool point = whole < rest.n && rest.p[whole] == '.';
    size_t at = whole + point, places = point ? digits_at(rest, at) : 0;
    if (whole + places == 0)
        return false;
    struct str power = { rest.p + at + places, rest.n - at - places };
    struct err ignored;
    double d;
    snprintf(out, NUMBER_MAX, "%s%.*s.%.*s%.*s", minus ? "-" : "", whole ? (int)whole : 1,
             whole ? rest.p : "0", places ? (int)places : 1, places ? rest.p + at : "0",
             (int)power.n, power.p);
    return parse_f64(str_of(out), -DBL_MAX, DBL_MAX, &d, &ignored) == 0;
}

/* What a plain scalar is; anything but text is put into `out` as JSON. */
static enum scalar resolve(struct str s, char out[static NUMBER_MAX])
{
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (str_is(s, words[i].word)) {
            snprintf(out, NUMBER_MAX, "%s", words[i].json);
            return words[i].kind;
        }
    if (memchr(s.p, '\0', s.n)) /* plain scalars have none; printf would stop there */
        return SCALAR_TEXT;
    return based_number(s, out) || number(s, out) ? SCALAR_NUMBER : SCALAR_TEXT;
}

static void put_text(struct buf *out, struct str s)
{
    struct json_out w = { .b = out };
    json_put_str(&w, NULL, s);
}

static struct level *top(struct reader *r)
{
    return r->depth ? &r->level[r->depth - 1] : NULL;
}

static int on_key(struct reader *r, struct str key, enum scalar kind, struct err *e)
{
    struct level *l = top(r);
    if (kind != SCALAR_TEXT) {
        bad(r, e, "the key '%.*s' is %s, and a key must be text", QUOTE(key), scalar_names[kind]);
        return err_hint(e, "put it in quotes: \"%.*s\":", QUOTE(key));
    }
    if (key.n > YAML_KEY_MAX)
        return bad(r, e, "the key '%.*s...' has %zu bytes; at most %d are allowed", QUOTE(key),
                   key.n, YAML_KEY_MAX);
    if (memchr(key.p, '\0', key.n))
        return bad(r, e, "the key '%.*s' has a NUL character in it", QUOTE(key));
    uint32_t before = names_find(&l->keys, key);
    if (before != NAME_NONE) {
        bad(r, e, "the key '%.*s' is given twice; it is on line %zu too", QUOTE(key),
            l->line[before]);
        return err_hint(e, "keep one of the two");
    }
    names_intern(&l->keys, key);
    vec_grow(l->line, l->n_lines, l->cap_lines);
    l->line[l->n_lines++] = r->line;
    if (l->n++)
        buf_addc(r->out, ',');
    put_text(r->out, key);
    buf_addc(r->out, ':');
    l->key_read = true;
    return 0;
}

/* Before each value that is not a key. */
static int value_begin(struct reader *r, struct err *e)
{
    struct level *l = top(r);
    if (++r->values > YAML_VALUES_MAX)
        return bad(r, e, "more than %d values", YAML_VALUES_MAX);
    if (l && !l->mapping && l->n++)
        buf_addc(r->out, ',');
    if (l)
        l->key_read = false;
    return 0;
}

static bool expects_key(struct reader *r)
{
    return r->depth && top(r)->mapping && !top(r)->key_read;
}

/* The mark of a type or of a value to repeat: neither may change what the reader sees. */
static int refuse_marks(const struct reader *r, const unsigned char *anchor,
                        const unsigned char *tag, struct err *e)
{
    if (anchor) {
        bad(r, e, "the anchor '&%.60s' is not allowed", (const char *)anchor);
        return err_hint(e, "write values out where they are used; quote a text that begins with &");
    }
    if (tag) {
        bad(r, e, "the tag '%.60s' is not allowed", (const char *)tag);
        return err_hint(e, "leave it out; quote a text that begins with !");
    }
    return 0;
}

static int on_scalar(struct reader *r, const yaml_event_t *ev, struct err *e)
{
    const char *tag = (const char *)ev->data.scalar.tag;
    bool says_text = tag && (strcmp(tag, YAML_STR_TAG) == 0 || strcmp(tag, "!") == 0);
    bool plain = ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && !says_text;
    struct str s = { (const char *)ev->data.scalar.value, ev->data.scalar.length };
    char json[NUMBER_MAX];
    if (refuse_marks(r, ev->data.scalar.anchor, says_text ? NULL : ev->data.scalar.tag, e) < 0)
        return -1;
    enum scalar kind = plain ? resolve(s, json) : SCALAR_TEXT;
    if (expects_key(r))
        return on_key(r, s, kind, e);
    if (value_begin(r, e) < 0)
        return -1;
    if (kind == SCALAR_TEXT)
        put_text(r->out, s);
    else
        buf_addz(r->out, json);
    return 0;
}

static int on_open(struct reader *r, bool mapping, struct err *e)
{
    if (expects_key(r)) {
        bad(r, e, "a key is %s, and a key must be text", mapping ? "a mapping" : "a list");
        return err_hint(e, "quote a key that begins with { or [");
    }
    if (value_begin(r, e) < 0)
        return -1;
    if (r->depth == YAML_DEPTH_MAX)
        return bad(r, e, "nested deeper than %d levels", YAML_DEPTH_MAX);
    r->level[r->depth++] = (struct level){ .mapping = mapping };
    buf_addc(r->out, mapping ? '{' : '[');
    return 0;
}

static void on_close(struct reader *r)
{
    struct level *l = top(r);
    buf_addc(r->out, l->mapping ? '}' : ']');
    level_clear(l);
    r->depth--;
}

static int on_alias(const struct reader *r, const yaml_event_t *ev, struct err *e)
{
    bad(r, e, "the alias '*%.60s' is not allowed", (const char *)ev->data.alias.anchor);
    return err_hint(e, "write the value out; quote a text that begins with *");
}

static int on_document(struct reader *r, struct err *e)
{
    if (++r->documents == 1)
        return 0;
    bad(r, e, "a second document begins here, and one is read");
    return err_hint(e, "put it in a file of its own");
}

static int on_event(struct reader *r, const yaml_event_t *ev, struct err *e)
{
    switch (ev->type) {
    case YAML_SCALAR_EVENT: return on_scalar(r, ev, e);
    case YAML_ALIAS_EVENT: return on_alias(r, ev, e);
    case YAML_DOCUMENT_START_EVENT: return on_document(r, e);
    case YAML_MAPPING_START_EVENT:
        return refuse_marks(r, ev->data.mapping_start.anchor, ev->data.mapping_start.tag, e) < 0
                 ? -1
                 : on_open(r, true, e);
    case YAML_SEQUENCE_START_EVENT:
        return refuse_marks(r, ev->data.sequence_start.anchor, ev->data.sequence_start.tag, e) < 0
                 ? -1
                 : on_open(r, false, e);
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT: on_close(r); return 0;
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_END_EVENT: return 0;
    }
    return 0;
}

int yaml_to_json(struct str text, struct buf *out, struct err *e)
{
    if (text.n > YAML_TEXT_MAX)
        return err_set(e, ERR_TOO_LARGE, "the YAML text has %zu bytes; at most %u are allowed",
                       text.n, YAML_TEXT_MAX);
    AUTO(buf_free) struct buf json = BUF(text.n * 8 + 64);
    AUTO(reader_clear) struct reader r;
    reader_init(&r, text, &json);
    for (bool more = true; more;) {
        AUTO(event_clear) yaml_event_t ev;
        if (!yaml_parser_parse(&r.parser, &ev)) {
            memset(&ev, 0, sizeof ev);
            return parse_failed(&r, e);
        }
        r.line = ev.start_mark.line + 1;
        if (on_event(&r, &ev, e) < 0)
            return -1;
        more = ev.type != YAML_STREAM_END_EVENT;
    }
    if (r.values == 0)
        buf_addz(&json, "{}");
    if (buf_check(&json, e) < 0)
        return -1;
    buf_add(out, buf_str(&json));
    return buf_check(out, e);
}

struct json_doc *yaml_read(struct str text, struct err *e)
{
    AUTO(buf_free) struct buf json = BUF(YAML_TEXT_MAX * 8u);
    return yaml_to_json(text, &json, e) < 0 ? NULL : json_read(buf_str(&json), e);
}

/* 1 for what opens, -1 for what closes. */
static int depth_step(yaml_event_type_t t)
{
    return (t == YAML_MAPPING_START_EVENT || t == YAML_SEQUENCE_START_EVENT) -
           (t == YAML_MAPPING_END_EVENT || t == YAML_SEQUENCE_END_EVENT);
}

size_t yaml_line_of(struct str text, const char *key)
{
    AUTO(reader_clear) struct reader r;
    int depth = 0;
    size_t parts = 0; /* keys and values of the outermost mapping so far */
    reader_init(&r, (struct str){ text.p, MIN(text.n, (size_t)YAML_TEXT_MAX) }, NULL);
    for (;;) {
        AUTO(event_clear) yaml_event_t ev;
        if (!yaml_parser_parse(&r.parser, &ev)) {
            memset(&ev, 0, sizeof ev);
            return 0;
        }
        int step = depth_step(ev.type);
        bool scalar = ev.type == YAML_SCALAR_EVENT;
        if (ev.type == YAML_STREAM_END_EVENT || depth > YAML_DEPTH_MAX ||
            (depth == 0 && ev.type == YAML_SEQUENCE_START_EVENT))
            return 0;
        if (depth == 1 && step >= 0) {
            struct str s = { (const char *)ev.data.scalar.value, ev.data.scalar.length };
            if (scalar && parts % 2 == 0 && str_is(s, key))
                return ev.start_mark.line + 1;
            parts++;
        }
        depth += step;
    }
}
