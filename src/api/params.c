/* Parameters of a call, checked against its row in the table of routes. */
#include "api/state.h"
#include "base/opts.h"
#include "base/parse.h"

static bool has_word(const char *words, struct str s)
{
    struct str rest = str_of(words), word;
    bool more = true, found = false;
    while (more && !found) {
        more = str_cut(rest, '|', &word, &rest);
        found = str_eq(word, s);
    }
    return found;
}

static int check_word(const struct api_param *p, struct str s, struct err *e)
{
    if (has_word(p->words, s))
        return 0;
    err_set(e, ERR_INVALID, "'%.*s' is not known here", (int)MIN(s.n, (size_t)60), s.p);
    return err_hint(e, "one of: %s", p->words);
}

static int check_words(const struct api_param *p, struct str s, struct err *e)
{
    struct str word;
    bool more = !str_is(s, "all");
    while (more) {
        more = str_cut(s, ',', &word, &s);
        if (check_word(p, word, e) < 0) {
            err_hint(e, "all, or some of these with commas between: %s", p->words);
            return -1;
        }
    }
    return 0;
}

static int check_number(const struct api_param *p, struct str s, struct err *e)
{
    uint64_t v;
    if (parse_u64(s, p->max, &v, e) < 0)
        return -1;
    if (v >= p->min)
        return 0;
    err_set(e, ERR_INVALID, "must be at least %llu", (unsigned long long)p->min);
    return err_hint(e, "from %llu to %llu", (unsigned long long)p->min, (unsigned long long)p->max);
}

static int check_text(const struct api_param *p, struct str s, struct err *e)
{
    uint64_t max = p->max ? p->max : PARAM_TEXT_MAX;
    if (s.n < p->min) {
        err_set(e, ERR_INVALID, "says nothing");
        return err_hint(e, "it has at least %llu bytes", (unsigned long long)p->min);
    }
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] < ' ' || s.p[i] == 0x7f) {
            err_set(e, ERR_INVALID, "has a control character in it");
            return err_hint(e, "leave out line ends and the like");
        }
    if (s.n <= max)
        return 0;
    err_set(e, ERR_INVALID, "has %zu bytes", s.n);
    return err_hint(e, "at most %llu are allowed", (unsigned long long)max);
}

static int check_hex(const struct api_param *p, struct str s, struct err *e)
{
    bool good = s.n >= p->min && s.n <= p->max;
    for (size_t i = 0; i < s.n; i++)
        good = good && ((s.p[i] >= '0' && s.p[i] <= '9') || (s.p[i] >= 'a' && s.p[i] <= 'f'));
    if (good)
        return 0;
    err_set(e, ERR_INVALID, "'%.*s' is no hex number", (int)MIN(s.n, (size_t)80), s.p);
    return err_hint(e, "%llu to %llu of the digits 0-9 and a-f", (unsigned long long)p->min,
                    (unsigned long long)p->max);
}

static bool parse_place(struct str s, struct stream_place *out)
{
    struct str run, segment, byte;
    uint64_t number;
    struct err e;
    if (!str_cut(s, '.', &run, &segment) || !str_cut(segment, '.', &segment, &byte) ||
        parse_u64(run, UINT32_MAX, &number, &e) < 0 ||
        parse_u64(segment, NUMBER_MAX, &out->at.segment, &e) < 0 ||
        parse_u64(byte, NUMBER_MAX, &out->at.byte, &e) < 0)
        return false;
    out->run = (uint32_t)number;
    return true;
}

static int check_place(const struct api_param *p, struct str s, struct err *e)
{
    struct stream_place unused;
    (void)p;
    if (parse_place(s, &unused))
        return 0;
    err_set(e, ERR_INVALID, "'%.*s' is no place in a log", (int)MIN(s.n, (size_t)60), s.p);
    return err_hint(e, "RUN.SEGMENT.BYTE, as a LOGGED frame has it");
}

int param_check(const struct api_param *p, struct str text, struct err *e)
{
    static int (*const checks[])(const struct api_param *, struct str, struct err *) = {
        [PARAM_TEXT] = check_text,   [PARAM_NUMBER] = check_number, [PARAM_WORD] = check_word,
        [PARAM_WORDS] = check_words, [PARAM_HEX] = check_hex,       [PARAM_PLACE] = check_place,
    };
    if (checks[p->kind](p, text, e) == 0)
        return 0;
    return err_wrap(e, "%s '%s'", p->header ? "header" : "query", p->name);
}

static int check_one(struct call *c, const struct api_param *p, const char *text, struct err *e)
{
    if (param_check(p, str_of(text), e) == 0)
        return 0;
    c->field = p->name;
    return -1;
}

static int unknown_query(struct call *c, const struct route *r, const char *key, struct err *e)
{
    AUTO(buf_free) struct buf all = BUF(160);
    const char *names[32];
    size_t n = 0;
    for (const struct api_param *p = r->param; p && p->name && n < ARRAY_LEN(names); p++)
        if (!p->header)
            names[n++] = p->name;
    for (size_t i = 0; i < n; i++)
        buf_printf(&all, "%s%s", i ? ", " : "", names[i]);
    c->field = arena_printf(http_arena(c->rq), "%.60s", key);
    err_set(e, ERR_INVALID, "query '%.60s' is not known here", key);
    const char *near = opts_nearest(key, names, n);
    if (near)
        return err_hint(e, "did you mean '%s'?", near);
    return n ? err_hint(e, "there are: %s", buf_str(&all).p)
             : err_hint(e, "this call has no query: leave out what follows the ?");
}

static int check_query(struct call *c, const struct route *r, struct err *e)
{
    const char *key, *value;
    for (size_t i = 0; http_query_next(c->rq, i, &key, &value); i++) {
        const struct api_param *p = r->param;
        while (p && p->name && (p->header || strcmp(p->name, key) != 0))
            p++;
        if ((!p || !p->name) && r->lenient)
            continue;
        if (!p || !p->name)
            return unknown_query(c, r, key, e);
        if (http_query(c->rq, key) != value) {
            c->field = p->name;
            err_set(e, ERR_INVALID, "query '%s' is given twice", p->name);
            return err_hint(e, "give it once");
        }
        if (check_one(c, p, value, e) < 0)
            return -1;
    }
    return 0;
}

int check_params(struct call *c, const struct route *r, struct err *e)
{
    if (check_query(c, r, e) < 0)
        return -1;
    for (const struct api_param *p = r->param; p && p->name; p++) {
        const char *text = p->header ? http_header(c->rq, p->name) : NULL;
        if (text && check_one(c, p, text, e) < 0)
            return -1;
        if (p->required && !text && !http_query(c->rq, p->name)) {
            c->field = p->name;
            err_set(e, ERR_INVALID, "query '%s' is missing", p->name);
            return err_hint(e, "%s", p->help);
        }
    }
    return 0;
}

uint64_t query_number(const struct call *c, const char *key, uint64_t dflt)
{
    const char *text = http_query(c->rq, key);
    uint64_t v;
    struct err e;
    return text && parse_u64(str_of(text), UINT64_MAX, &v, &e) == 0 ? v : dflt;
}

bool query_flag(const struct call *c, const char *key)
{
    const char *text = http_query(c->rq, key);
    bool v = text != NULL; /* ?follow alone says yes */
    struct err e;
    if (text && *text && parse_bool(str_of(text), &v, &e) < 0)
        return false;
    return v;
}

struct str query_text(const struct call *c, const char *key)
{
    const char *text = http_query(c->rq, key);
    return str_of(text ? text : "");
}

bool query_place(const struct call *c, const char *key, struct stream_place *out)
{
    const char *text = http_query(c->rq, key);
    return text && parse_place(str_of(text), out);
}
