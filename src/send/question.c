#include "send/question.h"

static const struct text_field {
    const char *name;
    size_t offset, max;
    bool of[2]; /* by enum send_way: it takes it */
    bool needed;
} texts[] = {
#define AT(field) offsetof(struct question, field)
    { "server", AT(server), 500, { true, false }, true },
    { "from", AT(from), 254, { true, false }, true },
    { "to", AT(to), 254, { true, false }, true },
    { "login", AT(login), 254, { true, false }, false },
    { "password_file", AT(password_file), 4096, { true, false }, false },
    { "url", AT(url), 2000, { false, true }, true },
    { "secret", AT(secret), 200, { false, true }, false },
    { "id", AT(id), 100, { false, true }, true },
    { "ca_file", AT(ca_file), 4096, { true, true }, false },
#undef AT
};

static int read_text(const struct json *o, const struct text_field *f, struct question *q,
                     struct err *e)
{
    struct str s = { 0 };
    if (json_get_str(o, f->name, f->max, &s, e) < 0)
        return -1;
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] < 0x20 || s.p[i] == 0x7f)
            return err_set(e, ERR_INVALID, "field '%s' has a control character in it", f->name);
    if (s.n == 0 && f->needed)
        return err_set(e, ERR_INVALID, "field '%s' is missing", f->name);
    if (s.n)
        *(const char **)(void *)((char *)q + f->offset) = s.p;
    return 0;
}

static int read_reach(const struct json *o, struct question *q, struct err *e)
{
    static const struct {
        const char *name;
        enum ip_kind kind;
    } rows[] = { { "any", IP_HERE }, { "network", IP_PRIVATE }, { "public", IP_PUBLIC } };
    struct str s = STR("public");
    if (json_get_str(o, "reach", 16, &s, e) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (str_is(s, rows[i].name)) {
            q->reach = rows[i].kind;
            return 0;
        }
    return err_set(e, ERR_INVALID, "field 'reach': '%.*s' is none of any, network, public",
                   STR_ARG(s));
}

int question_read(const struct json *o, struct question *out, struct err *e)
{
    struct question q = { .timeout_ms = 30000 };
    struct str way = STR("");
    if (!json_is_object(o))
        return err_set(e, ERR_INVALID, "the question is no object");
    if (json_need_str(o, "do", 16, &way, e) < 0)
        return -1;
    if (!str_is(way, "mail") && !str_is(way, "webhook"))
        return err_set(e, ERR_INVALID, "field 'do': '%.*s' is neither mail nor webhook",
                       STR_ARG(way));
    q.way = str_is(way, "mail") ? SEND_MAIL : SEND_WEBHOOK;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (texts[i].of[q.way] && read_text(o, &texts[i], &q, e) < 0)
            return -1;
    if (json_need_str(o, "body", SEND_BODY_MAX, &q.body, e) < 0 ||
        json_get_bool(o, "plain", &q.plain, e) < 0 || read_reach(o, &q, e) < 0 ||
        json_get_u64(o, "timeout_ms", SEND_TIMEOUT_MAX_MS, &q.timeout_ms, e) < 0)
        return -1;
    *out = q;
    return 0;
}
