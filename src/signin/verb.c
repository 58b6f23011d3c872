#include "signin/verb.h"

#include <sodium.h>

#define ASKED_MAX 1024 /* bytes of the largest verb's struct, and more */
#define FIELDS_MAX 32

static const struct verb *const verbs[] = {
    &verb_hash,
    &verb_password,
    &verb_pam,
    &verb_pam_look,
    &verb_ldap,
    &verb_ldap_look,
    &verb_oidc_discover,
    &verb_oidc_code,
    &verb_oidc_refresh,
    &verb_oidc_device_start,
    &verb_oidc_device_poll,
};

const struct verb *verb_at(size_t i)
{
    return i < ARRAY_LEN(verbs) ? verbs[i] : NULL;
}

static const struct verb *find_verb(const struct json *request, bool only_machine,
                                    struct refusal *r)
{
    struct str name = { 0 };
    if (!json_is_object(request)) {
        refuse(r, REASON_BAD_REQUEST, "the request is not an object");
        return NULL;
    }
    if (json_need_str(request, "do", 64, &name, &r->e) < 0)
        return NULL;
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
        if (str_is(name, verbs[i]->name) && (verbs[i]->of_machine || !only_machine))
            return verbs[i];
    refuse(r, REASON_BAD_REQUEST, "field 'do': there is no verb '%.*s'", STR_ARG(name));
    return NULL;
}

static bool is_secret(enum field_kind k)
{
    return k == FIELD_SECRET || k == FIELD_PASSWORD;
}

/* A C string in *out; NULL when it is empty or null. */
static int read_text(const struct json *request, const struct field *f, const char **out,
                     struct refusal *r)
{
    struct str s = { 0 };
    const struct json *v = json_find(request, f->name);
    if (f->kind == FIELD_TEXT_OR_NULL && json_is_null(v))
        return 0;
    if (json_get_str(request, f->name, f->max, &s, &r->e) < 0)
        return -1;
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c == 0 || (!is_secret(f->kind) && (c < 0x20 || c == 0x7f)))
            return refuse(r, REASON_BAD_REQUEST, "field '%s' has a control character in it",
                          f->name);
    }
    if (s.n == 0 && f->kind == FIELD_PASSWORD)
        return refuse(r, REASON_EMPTY_PASSWORD, "the password is empty");
    if (s.n == 0 && f->needed)
        return refuse(r, REASON_BAD_REQUEST, "field '%s' is empty", f->name);
    *out = s.n ? s.p : NULL;
    return 0;
}

static int read_field(const struct json *request, const struct field *f, void *asked,
                      struct refusal *r)
{
    char *at = (char *)asked + f->offset;
    const struct json *v = json_find(request, f->name);
    if (!v && f->needed)
        return refuse(r, REASON_BAD_REQUEST, "field '%s' is missing", f->name);
    if (!v || (json_is_null(v) && !f->needed))
        return 0;
    switch (f->kind) {
    case FIELD_FLAG: return json_get_bool(request, f->name, (bool *)(void *)at, &r->e);
    case FIELD_NUMBER: return json_get_u64(request, f->name, f->max, (uint64_t *)(void *)at, &r->e);
    case FIELD_TEXT:
    case FIELD_TEXT_OR_NULL:
    case FIELD_SECRET:
    case FIELD_PASSWORD: break;
    }
    return read_text(request, f, (const char **)(void *)at, r);
}

static int read_fields(const struct json *request, const struct verb *v, void *asked,
                       struct refusal *r)
{
    const char *names[FIELDS_MAX + 1] = { "do" };
    for (size_t i = 0; i < v->n; i++)
        names[i + 1] = v->fields[i].name;
    if (json_only(request, names, v->n + 1, &r->e) < 0)
        return -1;
    for (size_t i = 0; i < v->n; i++)
        if (read_field(request, &v->fields[i], asked, r) < 0)
            return -1;
    return 0;
}

static void wipe_secrets(const struct json *request, const struct verb *v)
{
    for (size_t i = 0; i < v->n; i++) {
        struct err ignored;
        struct str s = { 0 };
        bool found = is_secret(v->fields[i].kind) &&
                     json_get_str(request, v->fields[i].name, REQUEST_MAX, &s, &ignored) == 0;
        if (found && s.n)
            sodium_memzero((char *)(uintptr_t)s.p, s.n); /* ours: the document is about to go */
    }
}

static int run(struct str request, bool only_machine, struct json_out *out, struct refusal *r)
{
    _Alignas(16) char asked[ASKED_MAX] = { 0 };
    if (sodium_init() < 0)
        return refuse(r, REASON_BAD_REQUEST, "libsodium does not start");
    AUTO(json_free_p) struct json_doc *doc = json_read(request, &r->e);
    if (!doc)
        return -1;
    const struct verb *v = find_verb(json_root(doc), only_machine, r);
    if (!v)
        return -1;
    if (v->size > sizeof asked || v->n > FIELDS_MAX)
        abort(); /* a verb outgrew its bounds: the first test of it says so */
    int rc = read_fields(json_root(doc), v, asked, r);
    if (rc == 0)
        rc = v->run(asked, out, r);
    wipe_secrets(json_root(doc), v);
    return rc;
}

void verb_answer(struct str request, bool only_machine, struct buf *out)
{
    AUTO(buf_free) struct buf members = BUF(ANSWER_MAX);
    struct json_out good = { .b = &members }, w = { .b = out };
    struct refusal r = { 0 };
    json_begin(&good, NULL, '{');
    json_put_bool(&good, "ok", true);
    int rc = run(request, only_machine, &good, &r);
    json_end(&good, '}');
    if (rc == 0 && members.full)
        rc = refuse(&r, REASON_TOO_MANY, "the answer is larger than %u bytes", ANSWER_MAX);
    if (rc == 0) {
        buf_add(out, buf_str(&members));
    } else {
        json_begin(&w, NULL, '{');
        refusal_write(&r, &w);
        json_end(&w, '}');
    }
    buf_addc(out, '\n');
    if (members.p)
        sodium_memzero(members.p, members.n);
}
