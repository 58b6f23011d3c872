/* The OAuth 2 provider: JupyterHub, Grafana and the like sign their people in through us.
 *
 * Authorization code with PKCE, and nothing else: authorize, token, userinfo, and the page that says where they
 * are.  Clients are registered by an administrator (oauth_clients.c), so nobody is asked for consent.  What is
 * wrong with the client or the address to go back to is shown here; nobody is ever sent to an address that is
 * not registered. */
#include "auth/oauth.h"

#include <stdio.h>

#include "api/state.h"
#include "base/url.h"

#define LOCATION_MAX 16384
#define TOLD_SCOPES "profile email groups" /* whatever was asked for: this is what userinfo tells */

static const char *home_url(const struct call *c)
{
    return c->api->config.external_url ? c->api->config.external_url : "";
}

static void log_refusal(struct call *c, const char *client, enum oauth_error bad,
                        const struct err *e)
{
    log_event(c->api->config.log, LOG_INFO_, "oauth.refused",
              "client=%.64s peer=%s error=%s why=%s", client ? client : "",
              http_peer(c->rq)->address, oauth_error_name(bad), e->msg);
}

/* ---- authorize ---- */

struct ask {
    const char *client, *redirect, *state, *challenge;
};

/* One that is empty counts as left out (RFC 6749, 3.1). */
static const char *query(const struct call *c, const char *key)
{
    const char *text = http_query(c->rq, key);
    return text && *text ? text : NULL;
}

static bool is_twice(const struct call *c, const char *wanted)
{
    const char *key, *value;
    for (size_t i = 0; http_query_next(c->rq, i, &key, &value); i++)
        if ((!wanted || strcmp(key, wanted) == 0) && http_query(c->rq, key) != value)
            return true;
    return false;
}

static int show(struct call *c, const struct err *e)
{
    AUTO(buf_free) struct buf text = BUF(2048);
    buf_printf(&text, "Signing in does not work: %s.\n%s\n", e->msg, e->hint);
    http_reply(c->rq, 400, "text/plain; charset=utf-8", buf_str(&text));
    return 0;
}

static int go(struct call *c, const struct buf *location, struct err *e)
{
    if (buf_check(location, e) < 0)
        return -1;
    http_add_header(c->rq, "Location", location->p);
    http_reply(c->rq, 303, NULL, STR(""));
    return 0;
}

static void add(struct buf *b, const char *key, const char *value)
{
    if (!value)
        return;
    buf_printf(b, "%s%s=", strchr(b->p, '?') ? "&" : "?", key);
    url_encode(str_of(value), b);
}

static int send_back(struct call *c, const struct ask *a, enum oauth_error bad, struct err *e)
{
    AUTO(buf_free) struct buf to = BUF(LOCATION_MAX);
    log_refusal(c, a->client, bad, e);
    buf_addz(&to, a->redirect);
    add(&to, "error", oauth_error_name(bad));
    add(&to, "error_description", e->msg);
    add(&to, "state", a->state);
    return go(c, &to, e);
}

static int find_client(struct call *c, struct ask *a, struct err *e)
{
    a->client = query(c, "client_id");
    a->redirect = query(c, "redirect_uri");
    const struct oauth_client *x =
        a->client ? oauth_find_client(c->api->oauth, str_of(a->client)) : NULL;
    if (is_twice(c, "client_id") || is_twice(c, "redirect_uri"))
        err_set(e, ERR_INVALID, "client_id or redirect_uri is there twice");
    else if (!x)
        err_set(e, ERR_INVALID, "the client is not registered here");
    else if (!a->redirect)
        err_set(e, ERR_INVALID, "redirect_uri is missing");
    else if (!oauth_has_redirect(x, str_of(a->redirect)))
        err_set(e, ERR_INVALID, "redirect_uri is not one that is registered for this client");
    else
        return 0;
    return err_hint(e, "Tell whoever runs the tool that sent you here; clients are registered "
                       "with PUT /v1/clients/ID.");
}

static enum oauth_error check_ask(struct call *c, struct ask *a, struct err *e)
{
    const char *type = query(c, "response_type"), *method = query(c, "code_challenge_method");
    a->state = query(c, "state");
    a->challenge = query(c, "code_challenge");
    if (type && strcmp(type, "code") != 0) {
        err_set(e, ERR_INVALID, "response_type must be code");
        return OAUTH_UNSUPPORTED_RESPONSE_TYPE;
    }
    if (is_twice(c, NULL))
        err_set(e, ERR_INVALID, "a parameter is there twice");
    else if (!type)
        err_set(e, ERR_INVALID, "response_type is missing");
    else if (!a->challenge || !method || strcmp(method, "S256") != 0)
        err_set(e, ERR_INVALID, "code_challenge with code_challenge_method=S256 is needed");
    else if (!oauth_is_challenge(str_of(a->challenge)))
        err_set(e, ERR_INVALID, "code_challenge must be 43 signs of base64url");
    else
        return OAUTH_NONE;
    return OAUTH_INVALID_REQUEST;
}

/* Back to here afterwards, with the same query. */
static int go_to_signin(struct call *c, struct err *e)
{
    AUTO(buf_free) struct buf here = BUF(LOCATION_MAX), to = BUF(LOCATION_MAX);
    const char *key, *value;
    buf_addz(&here, "/oauth/authorize");
    for (size_t i = 0; http_query_next(c->rq, i, &key, &value); i++) {
        buf_addc(&here, i ? '&' : '?');
        url_encode(str_of(key), &here);
        buf_addc(&here, '=');
        url_encode(str_of(value), &here);
    }
    buf_printf(&to, "%s/signin", home_url(c));
    add(&to, "next", here.p);
    if (here.full || to.full) {
        err_set(e, ERR_INVALID, "the address is too long to come back to");
        err_hint(e, "send a shorter state");
        return -1;
    }
    return go(c, &to, e);
}

static int give_code(struct call *c, const struct ask *a, struct err *e)
{
    AUTO(buf_free) struct buf to = BUF(LOCATION_MAX);
    char code[KEY_TEXT_BYTES];
    struct oauth_ask wanted = { str_of(a->client), str_of(a->redirect), str_of(c->who.user),
                                str_of(a->challenge) };
    enum oauth_error bad =
        oauth_give_code(c->api->oauth, &wanted, clock_now_ms(&c->api->config.clock), code, e);
    if (bad)
        return send_back(c, a, bad, e);
    buf_addz(&to, a->redirect);
    add(&to, "code", code);
    add(&to, "state", a->state);
    return go(c, &to, e);
}

int api_oauth_authorize(struct call *c, struct err *e)
{
    struct ask a = { 0 };
    const char *cookie = http_cookie(c->rq, "nightshift"), *prompt = query(c, "prompt");
    int64_t now_ms = clock_now_ms(&c->api->config.clock);
    if (find_client(c, &a, e) < 0) {
        log_refusal(c, a.client, OAUTH_INVALID_REQUEST, e);
        return show(c, e);
    }
    enum oauth_error bad = check_ask(c, &a, e);
    if (bad)
        return send_back(c, &a, bad, e);
    if (!cookie || auth_session(c->api->config.auth, str_of(cookie), now_ms, &c->who, e) < 0) {
        if (!prompt || strcmp(prompt, "none") != 0)
            return go_to_signin(c, e);
        err_set(e, ERR_DENIED, "nobody is signed in here");
        return send_back(c, &a, OAUTH_LOGIN_REQUIRED, e);
    }
    /* A session that may do less than its owner must not become more in another tool. */
    if ((c->who.scopes & TOKEN_OF_PEOPLE) != TOKEN_OF_PEOPLE || c->who.tenants) {
        err_set(e, ERR_DENIED,
                "this session was opened with a token that has not all rights of its owner");
        return send_back(c, &a, OAUTH_ACCESS_DENIED, e);
    }
    return give_code(c, &a, e);
}

/* ---- token ---- */

static int refuse_token(struct call *c, const char *client, enum oauth_error bad,
                        const struct err *e)
{
    AUTO(buf_free) struct buf b = BUF(4096);
    struct json_out w = { .b = &b };
    log_refusal(c, client, bad, e);
    json_begin(&w, NULL, '{');
    json_put_str(&w, "error", str_of(oauth_error_name(bad)));
    json_put_str(&w, "error_description", str_of(e->msg));
    json_end(&w, '}');
    if (bad == OAUTH_INVALID_CLIENT)
        http_add_header(c->rq, "WWW-Authenticate", "Basic realm=\"nightshift\"");
    http_reply(c->rq, oauth_error_status(bad), "application/json", buf_str(&b));
    return 0;
}

static struct str form(const struct call *c, const char *key)
{
    const char *text = http_form(c->rq, key);
    return (struct str){ text, text ? strlen(text) : 0 };
}

static bool form_is_twice(const struct call *c)
{
    const char *key, *value;
    for (size_t i = 0; http_form_next(c->rq, i, &key, &value); i++)
        if (http_form(c->rq, key) != value)
            return true;
    return false;
}

/* In a header or in the form, not in both (RFC 6749, 2.3). */
static enum oauth_error read_client(struct call *c, struct oauth_redeem *r, struct err *e)
{
    const char *header = http_header(c->rq, "Authorization");
    r->client = form(c, "client_id");
    r->secret = form(c, "client_secret");
    if (!header)
        return OAUTH_NONE;
    struct str id, secret;
    if (!oauth_read_basic(str_of(header), http_arena(c->rq), &id, &secret)) {
        err_set(e, ERR_DENIED, "header 'Authorization': a client is known by Basic");
        return OAUTH_INVALID_CLIENT;
    }
    if (r->secret.p || (r->client.p && !str_eq(r->client, id))) {
        err_set(e, ERR_INVALID, "the client says who it is in two ways");
        return OAUTH_INVALID_REQUEST;
    }
    r->client = id;
    r->secret = secret;
    return OAUTH_NONE;
}

static enum oauth_error read_redeem(struct call *c, struct oauth_redeem *r, struct err *e)
{
    if (http_read_form(c->rq, e) < 0)
        return OAUTH_INVALID_REQUEST;
    struct str type = form(c, "grant_type");
    enum oauth_error bad = read_client(c, r, e);
    r->code = form(c, "code");
    r->redirect = form(c, "redirect_uri");
    r->verifier = form(c, "code_verifier");
    if (bad)
        return bad;
    if (form_is_twice(c))
        err_set(e, ERR_INVALID, "a parameter is there twice");
    else if (!type.n || !r->code.n || !r->redirect.n || !r->verifier.n)
        err_set(e, ERR_INVALID,
                "grant_type, code, redirect_uri and code_verifier are needed, each of them");
    else if (!str_is(type, "authorization_code")) {
        err_set(e, ERR_INVALID, "grant_type must be authorization_code");
        return OAUTH_UNSUPPORTED_GRANT_TYPE;
    } else
        return OAUTH_NONE;
    return OAUTH_INVALID_REQUEST;
}

int api_oauth_token(struct call *c, struct err *e)
{
    AUTO(buf_free) struct buf b = BUF(4096);
    struct json_out w = { .b = &b };
    struct oauth_redeem r = { 0 };
    char token[KEY_TEXT_BYTES];
    enum oauth_error bad = read_redeem(c, &r, e);
    if (!bad)
        bad = oauth_redeem(c->api->oauth, &r, clock_now_ms(&c->api->config.clock), token, e);
    if (bad)
        return refuse_token(
            c, r.client.p ? arena_strndup(http_arena(c->rq), r.client.p, r.client.n) : NULL, bad,
            e);
    json_begin(&w, NULL, '{');
    json_put_str(&w, "access_token", str_of(token));
    json_put_str(&w, "token_type", STR("Bearer"));
    json_put_i64(&w, "expires_in", OAUTH_TOKEN_MS / 1000);
    json_put_str(&w, "scope", STR(TOLD_SCOPES));
    json_end(&w, '}');
    http_add_header(c->rq, "Cache-Control", "no-store");
    http_reply(c->rq, 200, "application/json", buf_str(&b));
    return 0;
}

/* ---- userinfo ---- */

/* No tenant's group can be taken for a role on the site, "role:admin". */
static void put_place_groups(struct call *c, struct json_out *w, const struct place *at)
{
    if (memchr(at->tenant.p, ':', at->tenant.n))
        return;
    json_put_str(w, NULL, at->tenant);
    if (!str_is(at->tenant, "role"))
        json_put_str(w, NULL,
                     str_of(arena_printf(http_arena(c->rq), "%.*s:%s", STR_ARG(at->tenant),
                                         role_name(at->role))));
}

static void put_groups(struct call *c, struct json_out *w, struct str user)
{
    struct people *p = auth_people(c->api->config.auth);
    size_t n;
    const struct place *at = people_places(p, user, http_arena(c->rq), &n);
    enum role role =
        auth_is_root(c->api->config.auth, user) ? ROLE_ADMIN : people_site_role(p, user);
    json_begin(w, "groups", '[');
    if (role != ROLE_NONE)
        json_put_str(w, NULL, str_of(arena_printf(http_arena(c->rq), "role:%s", role_name(role))));
    for (size_t i = 0; i < n; i++)
        put_place_groups(c, w, &at[i]);
    json_end(w, ']');
}

static bool find_holder(struct call *c, struct oauth_holder *out)
{
    static const char bearer[] = "Bearer ";
    const char *header = http_header(c->rq, "Authorization");
    if (!header || strncmp(header, bearer, sizeof bearer - 1) != 0 ||
        !oauth_holder_of(c->api->oauth, str_of(header + sizeof bearer - 1),
                         clock_now_ms(&c->api->config.clock), out))
        return false;
    const struct person *x = people_find(auth_people(c->api->config.auth), str_of(out->user));
    return !x || (!x->disabled && out->since_ms >= x->void_ms);
}

int api_oauth_userinfo(struct call *c, struct err *e)
{
    AUTO(buf_free) struct buf b = BUF(1 << 20);
    struct json_out w = { .b = &b };
    struct oauth_holder who;
    if (!find_holder(c, &who)) {
        err_set(e, ERR_DENIED, "this needs a token that /oauth/token gave, and it is over soon");
        http_add_header(c->rq, "WWW-Authenticate", "Bearer error=\"invalid_token\"");
        return refuse_token(c, NULL, OAUTH_INVALID_TOKEN, e);
    }
    struct str user = str_of(who.user);
    const struct person *x = people_find(auth_people(c->api->config.auth), user);
    json_begin(&w, NULL, '{');
    json_put_str(&w, "sub", user);
    json_put_str(&w, "preferred_username", user);
    json_put_str(&w, "name", x && x->full_name[0] ? str_of(x->full_name) : user);
    if (x && x->mail[0])
        json_put_str(&w, "email", str_of(x->mail));
    put_groups(c, &w, user);
    json_end(&w, '}');
    reply_json(c, 200, &b);
    return 0;
}

/* ---- where all of it is (RFC 8414) ---- */

static void put_words(struct json_out *w, const char *key, const char *words)
{
    struct str rest = str_of(words), word;
    json_begin(w, key, '[');
    while (str_next_word(&rest, &word))
        json_put_str(w, NULL, word);
    json_end(w, ']');
}

int api_oauth_metadata(struct call *c, struct err *e)
{
    static const struct {
        const char *key, *path;
    } places[] = { { "issuer", "" },
                   { "authorization_endpoint", "/oauth/authorize" },
                   { "token_endpoint", "/oauth/token" },
                   { "userinfo_endpoint", "/oauth/userinfo" } };
    static const struct {
        const char *key, *words;
    } abilities[] = { { "response_types_supported", "code" },
                      { "response_modes_supported", "query" },
                      { "grant_types_supported", "authorization_code" },
                      { "code_challenge_methods_supported", "S256" },
                      { "scopes_supported", TOLD_SCOPES },
                      { "token_endpoint_auth_methods_supported",
                        "client_secret_basic client_secret_post none" } };
    AUTO(buf_free) struct buf b = BUF(64 << 10);
    struct json_out w = { .b = &b };
    if (!c->api->config.external_url) {
        err_set(e, ERR_NOT_FOUND, "the address that people use is not known");
        return err_hint(e, "set external_url in the settings file, e.g. https://gpu.lab.example");
    }
    json_begin(&w, NULL, '{');
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        json_put_str(&w, places[i].key,
                     str_of(arena_printf(http_arena(c->rq), "%s%s", home_url(c), places[i].path)));
    for (size_t i = 0; i < ARRAY_LEN(abilities); i++)
        put_words(&w, abilities[i].key, abilities[i].words);
    json_end(&w, '}');
    reply_json(c, 200, &b);
    return 0;
}
