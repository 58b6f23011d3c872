#include "signin/provider.h"

#include <sodium.h>
#include <stdio.h>

#include "signin/idtoken.h"
#include "sys/clock.h"

#define DISCOVERY "/.well-known/openid-configuration"
#define TOKEN_TEXT_MAX 16000
#define FORM_SECRET_MAX 4096

struct provider {
    const struct provider_client *client;
    struct fetcher *fetcher;
    struct json_doc *about; /* what discovery said; endpoints point into it */
    const char *endpoint[ENDPOINT_COUNT];
    bool secret_in_form;
};

static const struct {
    const char *name;
    bool needed;
} endpoints[] = {
#define X(id, name, needed) [ENDPOINT_##id] = { name, needed },
    ENDPOINTS(X)
#undef X
};

/* ---- discovery ---- */

static struct json_doc *get_object(struct provider *p, const struct fetch *what, struct refusal *r)
{
    AUTO(form_free) struct buf body = { 0 };
    struct err ignored;
    long status = 0;
    if (fetch(p->fetcher, what, &status, &body, r) < 0)
        return NULL;
    if (status == 401 && what->bearer) {
        refuse(r, REASON_GONE, "the provider does not know the person any more");
        return NULL;
    }
    struct json_doc *doc = status == 200 ? json_read(buf_str(&body), &ignored) : NULL;
    if (doc && json_is_object(json_root(doc)))
        return doc;
    refuse(r, REASON_PROVIDER, "the provider answers %ld%s at %.200s", status,
           status == 200 ? " without a JSON object" : "", what->url);
    return json_free(doc);
}

static int take_endpoints(struct provider *p, struct refusal *r)
{
    const struct json *about = json_root(p->about);
    for (size_t i = 0; i < ENDPOINT_COUNT; i++) {
        struct err ignored;
        struct str url = { 0 };
        bool there = json_get_str(about, endpoints[i].name, 2048, &url, &ignored) == 0 && url.n;
        if (!there && endpoints[i].needed)
            return refuse(r, REASON_PROVIDER, "the provider does not tell its %s",
                          endpoints[i].name);
        if (there && fetch_check_url(url.p, r) < 0)
            return err_wrap(&r->e, "the provider's %s", endpoints[i].name);
        p->endpoint[i] = there ? url.p : NULL;
    }
    return 0;
}

/* Basic is what everybody must take; the form is for those who say that they take only it. */
static bool wants_secret_in_form(const struct json *about)
{
    const struct json *ways = json_find(about, "token_endpoint_auth_methods_supported");
    bool basic = false, post = false;
    for (const struct json *w = json_is_array(ways) ? json_first(ways) : NULL; w;
         w = json_next(ways, w)) {
        struct err ignored;
        struct str s = { 0 };
        if (json_as_str(w, 64, &s, &ignored) < 0)
            continue;
        basic = basic || str_is(s, "client_secret_basic");
        post = post || str_is(s, "client_secret_post");
    }
    return post && !basic;
}

static int discover(struct provider *p, struct refusal *r)
{
    const char *issuer = p->client->issuer;
    char url[1024 + sizeof DISCOVERY];
    size_t n = strlen(issuer);
    struct err ignored;
    struct str said = { 0 };
    n -= n > 0 && issuer[n - 1] == '/';
    snprintf(url, sizeof url, "%.*s%s", (int)n, issuer, DISCOVERY);
    struct fetch what = { .url = url };
    p->about = get_object(p, &what, r);
    if (!p->about)
        return -1;
    if (json_need_str(json_root(p->about), "issuer", 1024, &said, &ignored) < 0 ||
        !str_is(said, issuer))
        return refuse(r, REASON_WRONG_ISSUER, "the provider at %.120s calls itself '%.*s'", issuer,
                      (int)MIN(said.n, (size_t)120), said.p ? said.p : "");
    p->secret_in_form = wants_secret_in_form(json_root(p->about));
    return take_endpoints(p, r);
}

struct provider *provider_open(const struct provider_client *c, struct refusal *r)
{
    AUTO(provider_close_p) struct provider *p = xcalloc(1, sizeof *p);
    p->client = c;
    p->fetcher = fetcher_new(c->ca_file, c->proxy, r);
    if (!p->fetcher || discover(p, r) < 0)
        return NULL;
    return TAKE(p);
}

void provider_close_p(struct provider **p)
{
    if (*p) {
        fetcher_free_p(&(*p)->fetcher);
        json_free((*p)->about);
    }
    free(*p);
    *p = NULL;
}

void provider_write(const struct provider *p, struct json_out *out)
{
    json_put_str(out, "issuer", str_of(p->client->issuer));
    for (size_t i = 0; i < ENDPOINT_COUNT; i++)
        if (p->endpoint[i])
            json_put_str(out, endpoints[i].name, str_of(p->endpoint[i]));
}

/* ---- tokens ---- */

/* What "invalid_grant" means depends on what was given. */
static const struct {
    enum reason why;
    const char *words;
} grants[] = {
    [GRANT_CODE] = { REASON_REPLAYED, "the provider does not take the code: it was used before, is "
                                      "too old, or belongs to another sign-in" },
    [GRANT_REFRESH] = { REASON_GONE, "the provider does not know the person any more, or ended "
                                     "the session" },
    [GRANT_DEVICE] = { REASON_EXPIRED, "the device code was used before or is too old" },
};

static const struct {
    const char *error;
    enum reason why;
    const char *words;
} errors[] = {
    { "invalid_client", REASON_CLIENT,
      "the provider does not know us: client_id or client_secret "
      "is wrong" },
    { "unauthorized_client", REASON_CLIENT,
      "the provider does not let us sign people in this "
      "way" },
    { "unsupported_grant_type", REASON_CLIENT, "the provider does not offer this way to sign in" },
    { "invalid_scope", REASON_CLIENT, "the provider does not give what the scopes ask for" },
    { "authorization_pending", REASON_PENDING, "the person has not agreed yet" },
    { "slow_down", REASON_SLOW_DOWN, "the provider was asked too often" },
    { "access_denied", REASON_DECLINED, "the person did not agree" },
    { "expired_token", REASON_EXPIRED, "nobody agreed in time" },
};

static int refused(const struct json *answer, long status, enum grant why, struct refusal *r)
{
    struct err ignored;
    struct str error = { 0 };
    if (!json_is_object(answer) || json_get_str(answer, "error", 64, &error, &ignored) < 0 ||
        !error.p)
        return refuse(r, REASON_PROVIDER, "the provider answers %ld", status);
    if (str_is(error, "invalid_grant"))
        return refuse(r, grants[why].why, "%s", grants[why].words);
    for (size_t i = 0; i < ARRAY_LEN(errors); i++)
        if (str_is(error, errors[i].error))
            return refuse(r, errors[i].why, "%s", errors[i].words);
    bool is_word = strspn(error.p, "abcdefghijklmnopqrstuvwxyz_") == error.n;
    return refuse(r, REASON_PROVIDER, "the provider answers %ld: %s", status,
                  is_word ? error.p : "an error");
}

/* RFC 6749 2.3.1 has both form-encoded before HTTP Basic encodes them. */
static bool sign_with_secret(const struct provider *p, struct buf *form, char *user, char *secret)
{
    const struct provider_client *c = p->client;
    if (!c->client_secret || p->secret_in_form) {
        form_add(form, "client_id", c->client_id);
        if (c->client_secret)
            form_add(form, "client_secret", c->client_secret);
        return false;
    }
    AUTO(form_free) struct buf id = BUF(FORM_SECRET_MAX), key = BUF(FORM_SECRET_MAX);
    form_escape(&id, c->client_id);
    form_escape(&key, c->client_secret);
    snprintf(user, FORM_SECRET_MAX, "%s", id.p);
    snprintf(secret, FORM_SECRET_MAX, "%s", key.p);
    return true;
}

struct json_doc *provider_post(struct provider *p, enum endpoint to, enum grant why,
                               struct buf *form, struct refusal *r)
{
    AUTO(form_free) struct buf body = { 0 };
    char user[FORM_SECRET_MAX], secret[FORM_SECRET_MAX];
    struct err ignored;
    long status = 0;
    if (!p->endpoint[to]) {
        refuse(r, REASON_CLIENT, "the provider has no %s", endpoints[to].name);
        return NULL;
    }
    bool basic = sign_with_secret(p, form, user, secret);
    struct fetch what = { .url = p->endpoint[to], .form = form->p };
    if (basic) {
        what.user = user;
        what.secret = secret;
    }
    int rc = form->full ? refuse(r, REASON_BAD_REQUEST, "the request to the provider is too long")
                        : fetch(p->fetcher, &what, &status, &body, r);
    sodium_memzero(secret, sizeof secret);
    if (rc < 0)
        return NULL;
    struct json_doc *doc = json_read(buf_str(&body), &ignored);
    if (status == 200 && doc && json_is_object(json_root(doc)))
        return doc;
    refused(doc ? json_root(doc) : NULL, status, why, r);
    return json_free(doc);
}

/* ---- the person ---- */

static int check_token(struct provider *p, struct str token, const char *nonce,
                       struct json_doc **out, struct refusal *r)
{
    AUTO(buf_free) struct buf keys = { 0 };
    struct clock clock = clock_wall();
    long status = 0;
    struct fetch what = { .url = p->endpoint[ENDPOINT_JWKS] };
    if (fetch(p->fetcher, &what, &status, &keys, r) < 0)
        return -1;
    if (status != 200)
        return refuse(r, REASON_PROVIDER, "the provider answers %ld when asked for its keys",
                      status);
    struct idtoken_want want = { .issuer = p->client->issuer,
                                 .client_id = p->client->client_id,
                                 .nonce = nonce,
                                 .now_s = clock_now_ms(&clock) / 1000 };
    return idtoken_check(token, buf_str(&keys), &want, out, r);
}

static int same_subject(const struct json *claims, struct str wanted, struct refusal *r)
{
    struct err ignored;
    struct str sub = { 0 };
    if (json_need_str(claims, "sub", 255, &sub, &ignored) == 0 && str_eq(sub, wanted))
        return 0;
    return refuse(r, REASON_WRONG_SUBJECT, "the provider speaks of somebody else");
}

static struct json_doc *ask_userinfo(struct provider *p, const struct json *tokens,
                                     struct refusal *r)
{
    struct err ignored;
    struct str access = { 0 };
    bool there = json_need_str(tokens, "access_token", TOKEN_TEXT_MAX, &access, &ignored) == 0;
    for (size_t i = 0; i < access.n; i++) /* it becomes part of a header's line */
        there = there && access.p[i] > ' ' && access.p[i] < 0x7f;
    if (!there || access.n == 0) {
        refuse(r, REASON_PROVIDER, "the provider sent no access token");
        return NULL;
    }
    struct fetch what = { .url = p->endpoint[ENDPOINT_USERINFO], .bearer = access.p };
    return get_object(p, &what, r);
}

static int write_all(const struct provider *p, const struct json *tokens,
                     const struct json_doc *claims, const struct json_doc *more,
                     struct json_out *out, struct refusal *r)
{
    struct err ignored;
    struct str refresh = { 0 };
    if (claims_write(claims ? json_root(claims) : NULL, more ? json_root(more) : NULL,
                     &p->client->claims, out, r) < 0)
        return -1;
    if (json_get_str(tokens, "refresh_token", TOKEN_TEXT_MAX, &refresh, &ignored) == 0 && refresh.n)
        json_put_str(out, "refresh_token", refresh);
    return 0;
}

/* The checked ID token, or NULL in *out when there is none and none is needed. */
static int take_token(struct provider *p, const struct json *tokens,
                      const struct provider_expect *want, struct json_doc **out, struct refusal *r)
{
    struct err ignored;
    struct str token = { 0 };
    if (json_get_str(tokens, "id_token", IDTOKEN_MAX, &token, &ignored) < 0 ||
        (!token.p && want->token_needed))
        return refuse(r, REASON_BAD_TOKEN,
                      "the provider sent no ID token; is openid in the scopes?");
    if (token.p && check_token(p, token, want->nonce, out, r) < 0)
        return -1;
    if (*out && want->subject)
        return same_subject(json_root(*out), str_of(want->subject), r);
    return 0;
}

int provider_person(struct provider *p, const struct json *tokens,
                    const struct provider_expect *want, struct json_out *out, struct refusal *r)
{
    AUTO(json_free_p) struct json_doc *claims = NULL, *more = NULL;
    struct err ignored;
    struct str subject = str_of(want->subject ? want->subject : "");
    if (take_token(p, tokens, want, &claims, r) < 0)
        return -1;
    if (claims && json_get_str(json_root(claims), "sub", 255, &subject, &ignored) < 0)
        return -1; /* checked before: it is there */
    bool ask = !claims || claims_missing(json_root(claims), &p->client->claims);
    if (ask && p->endpoint[ENDPOINT_USERINFO]) {
        more = ask_userinfo(p, tokens, r);
        if (!more || same_subject(json_root(more), subject, r) < 0)
            return -1;
    }
    if (!claims && !more)
        return refuse(r, REASON_PROVIDER, "the provider says nothing about the person");
    return write_all(p, tokens, claims, more, out, r);
}
