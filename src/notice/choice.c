#include "notice/choice.h"

#include <sodium.h>
#include <stdio.h>

#include "base/url.h"

void choice_init(struct notice_choice *c)
{
    *c = (struct notice_choice){ .log = true };
    for (int w = 0; w < NOTICE_WAY_COUNT; w++)
        for (int k = 0; k < NOTICE_KIND_COUNT; k++)
            c->on[w][k] = notice_kind((enum notice_kind)k)->on;
}

void choice_clear(struct notice_choice *c)
{
    free(c->mail);
    free(c->webhook);
    sodium_memzero(c, sizeof *c);
}

void choice_copy(struct notice_choice *to, const struct notice_choice *from)
{
    *to = *from;
    to->mail = from->mail ? xstrdup(from->mail) : NULL;
    to->webhook = from->webhook ? xstrdup(from->webhook) : NULL;
}

bool choice_wants(const struct notice_choice *c, enum notice_way w, enum notice_kind k)
{
    return (w == NOTICE_MAIL ? c->mail : c->webhook) && c->on[w][k];
}

void choice_make_secret(struct notice_choice *c)
{
    unsigned char key[32];
    randombytes_buf(key, sizeof key);
    snprintf(c->secret, sizeof c->secret, "whsec_");
    sodium_bin2base64(c->secret + 6, sizeof c->secret - 6, key, sizeof key,
                      sodium_base64_VARIANT_ORIGINAL);
    sodium_memzero(key, sizeof key);
}

/* ---- changes ---- */

static void set_text(char **field, struct str s)
{
    free(*field);
    *field = NULL;
    if (s.n == 0)
        return;
    *field = xcalloc(s.n + 1, 1);
    memcpy(*field, s.p, s.n);
}

/* *out_given: it is said; null and "" say that there is none any more. */
static int read_text(const struct json *o, const char *key, size_t max, struct str *out,
                     bool *out_given, struct err *e)
{
    const struct json *v = json_find(o, key);
    *out = (struct str){ 0 };
    *out_given = v != NULL;
    return v && !json_is_null(v) ? json_get_str(o, key, max, out, e) : 0;
}

static int check_mail(struct str s, const struct choice_bounds *b, struct err *e)
{
    if (s.n == 0)
        return 0;
    if (!b->mail) {
        err_set(e, ERR_CONFLICT, "this server sends no mail");
        return err_hint(e, "the administrator has to set `mail_server` and `mail_from`");
    }
    bool me = str_is(s, "me");
    if (me && !b->record.n) {
        err_set(e, ERR_INVALID, "nobody has told this server your mail address");
        return err_hint(e, "say it: nightshift notices set --mail you@lab.example");
    }
    struct str address = me ? b->record : s;
    if (mail_check_address(address, e) < 0)
        return -1;
    if (!mail_domain_listed(address, b->mail_domains)) {
        err_set(e, ERR_DENIED, "mail to '%.*s' is not allowed here", STR_ARG(address));
        return err_hint(e, "allowed are: %.*s", STR_ARG(b->mail_domains));
    }
    return 0;
}

static int change_mail(struct notice_choice *c, const struct json *o, const struct choice_bounds *b,
                       struct err *e)
{
    struct str s;
    bool given;
    if (read_text(o, "mail", MAIL_ADDRESS_MAX, &s, &given, e) < 0 ||
        (given && check_mail(s, b, e) < 0))
        return err_about(e, "mail");
    if (given)
        set_text(&c->mail, s);
    return 0;
}

static int change_webhook(struct notice_choice *c, const struct json *o,
                          const struct choice_bounds *b, bool *out_secret, struct err *e)
{
    struct str s;
    bool given, fresh = false;
    if (read_text(o, "webhook", URL_MAX, &s, &given, e) < 0 ||
        (given && s.n && webhook_check_url(s, b->webhooks, e) < 0))
        return err_about(e, "webhook");
    if (json_get_bool(o, "new_secret", &fresh, e) < 0)
        return err_about(e, "new_secret");
    if (given && (!c->webhook || !str_is(s, c->webhook))) {
        set_text(&c->webhook, s);
        fresh = true; /* whoever had the old one is another, maybe */
    }
    if (!c->webhook)
        memset(c->secret, 0, sizeof c->secret);
    *out_secret = fresh && c->webhook;
    if (*out_secret)
        choice_make_secret(c);
    return 0;
}

static int change_kind(struct notice_choice *c, const struct json_member *m, struct err *e)
{
    static const char *const keys[] = { "mail", "webhook" };
    enum notice_kind k;
    if (!notice_kind_parse(m->key, &k)) {
        err_set(e, ERR_INVALID, "there is no kind '%.*s' of notices",
                (int)MIN(m->key.n, (size_t)60), m->key.p);
        return err_hint(e, "see those there are: nightshift notices");
    }
    if (!json_is_object(m->value))
        return err_set(e, ERR_INVALID, "'%.*s' is no object", STR_ARG(m->key));
    if (json_only(m->value, keys, ARRAY_LEN(keys), e) < 0)
        return -1;
    for (int w = 0; w < NOTICE_WAY_COUNT; w++)
        if (json_get_bool(m->value, keys[w], &c->on[w][k], e) < 0)
            return -1;
    return 0;
}

static int change_kinds(struct notice_choice *c, const struct json *o, struct err *e)
{
    const struct json *kinds = json_find(o, "kinds");
    struct json_member m = { 0 };
    if (!kinds)
        return 0;
    if (!json_is_object(kinds)) {
        err_set(e, ERR_INVALID, "field 'kinds' is no object");
        return err_about(e, "kinds");
    }
    while (json_next_member(kinds, &m))
        if (change_kind(c, &m, e) < 0) {
            err_wrap(e, "field 'kinds'");
            return err_about(e, "kinds");
        }
    return 0;
}

int choice_change(struct notice_choice *c, const struct json *o, const struct choice_bounds *b,
                  bool *out_secret, struct err *e)
{
    struct notice_choice fresh;
    bool secret = false;
    choice_copy(&fresh, c);
    if (change_mail(&fresh, o, b, e) < 0 || change_webhook(&fresh, o, b, &secret, e) < 0 ||
        change_kinds(&fresh, o, e) < 0 || json_get_bool(o, "log", &fresh.log, e) < 0) {
        choice_clear(&fresh);
        return -1;
    }
    choice_clear(c);
    *c = fresh;
    *out_secret = secret;
    return 0;
}

/* ---- as JSON ---- */

static void put_members(const struct notice_choice *c, struct json_out *w)
{
    if (c->mail)
        json_put_str(w, "mail", str_of(c->mail));
    else
        json_put_null(w, "mail");
    if (c->webhook)
        json_put_str(w, "webhook", str_of(c->webhook));
    else
        json_put_null(w, "webhook");
    json_put_bool(w, "log", c->log);
    json_begin(w, "kinds", '{');
    for (int k = 0; k < NOTICE_KIND_COUNT; k++) {
        json_begin(w, notice_kind((enum notice_kind)k)->name, '{');
        for (int way = 0; way < NOTICE_WAY_COUNT; way++)
            json_put_bool(w, notice_way_name((enum notice_way)way), c->on[way][k]);
        json_end(w, '}');
    }
    json_end(w, '}');
}

void choice_put(const struct notice_choice *c, struct json_out *w)
{
    put_members(c, w);
}

void choice_write(const struct notice_choice *c, struct buf *out)
{
    struct json_out w = { .b = out };
    json_begin(&w, NULL, '{');
    put_members(c, &w);
    if (c->secret[0])
        json_put_str(&w, "secret", str_of(c->secret));
    json_end(&w, '}');
}

/* What an older or a newer version wrote: kinds that are not known are left out, others are as they are by default. */
int choice_read(struct str json, struct notice_choice *out, struct err *e)
{
    AUTO(json_free_p) struct json_doc *d = json_read(json, e);
    AUTO(choice_clear) struct notice_choice c;
    const struct json *o = d ? json_root(d) : NULL;
    struct json_member m = { 0 };
    struct str s;
    bool given;
    choice_init(&c);
    if (!d)
        return -1;
    if (!json_is_object(o))
        return err_set(e, ERR_INVALID, "it is no object");
    if (read_text(o, "mail", MAIL_ADDRESS_MAX, &s, &given, e) < 0)
        return -1;
    set_text(&c.mail, s);
    if (read_text(o, "webhook", URL_MAX, &s, &given, e) < 0)
        return -1;
    set_text(&c.webhook, s);
    if (read_text(o, "secret", sizeof c.secret - 1, &s, &given, e) < 0)
        return -1;
    snprintf(c.secret, sizeof c.secret, "%.*s", (int)s.n, s.n ? s.p : "");
    const struct json *kinds = json_find(o, "kinds");
    enum notice_kind k;
    while (kinds && json_next_member(kinds, &m))
        if (notice_kind_parse(m.key, &k) && change_kind(&c, &m, e) < 0)
            return -1;
    if (json_get_bool(o, "log", &c.log, e) < 0)
        return -1;
    *out = c;
    c = (struct notice_choice){ 0 };
    return 0;
}
