/* Tools that sign people in through us (OAuth 2, RFC 6749 and 7636): what works, and everything that must not. */
#include <stdio.h>

#include "api/state.h"
#include "tests/lib/asking.h"

#define HOME "https://gpu.lab.example/ns"
#define HUB "https://hub.example/hub/oauth_callback?tool=1"
#define HUB_CODED "https%3A%2F%2Fhub.example%2Fhub%2Foauth_callback%3Ftool%3D1"
/* of RFC 7636, appendix B */
#define VERIFIER "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
#define CHALLENGE "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
#define E6 "%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9"
#define FORM "application/x-www-form-urlencoded"
#define ASKED                                                                                      \
    "response_type=code&client_id=hub&redirect_uri=" HUB_CODED "&code_challenge=" CHALLENGE        \
    "&code_challenge_method=S256&state=s%20t"

struct dance {
    struct asking k;
    const char *ana;    /* her session */
    const char *secret; /* of the hub */
};

static const char *make_hub(struct dance *d, const char *id)
{
    struct answer *a = ask_with(&d->k, "root", say(&d->k, "PUT /v1/clients/%s", id),
                                "{'redirect_uris':['" HUB "'],'new_secret':true}");
    return at_str(CHECK_STATUS(a, 200), "secret");
}

static void begin(struct dance *d)
{
    struct asking *k = &d->k;
    asking_begin(k, &(struct asking_site){ .api = { .external_url = HOME } });
    asking_tenant(k, "vision", NULL);
    asking_tenant(k, "role", NULL);
    asking_person(k, "ana", "vision", "lead");
    asking_person(k, "ana", "role", "viewer");
    CHECK_STATUS(
        ask_with(k, "root", "PUT /v1/users/ana", "{'full_name':'Ana','mail':'ana@lab.example'}"),
        200);
    asking_person(k, "oda", NULL, "operator");
    d->ana = asking_session(k, "ana");
    d->secret = make_hub(d, "hub");
}

static struct answer *go(struct dance *d, const char *who, const char *query)
{
    return ask(&d->k, who, say(&d->k, "GET /oauth/authorize?%s", query));
}

/* What an answer that sends back says of `key`; "" when it says nothing. */
static const char *back(struct dance *d, struct answer *a, const char *key)
{
    const char *to = header_of(CHECK_STATUS(a, 303), "Location"), *p = strchr(to, '?');
    size_t n = strlen(key);
    for (; p; p = strchr(p + 1, '&'))
        if (strncmp(p + 1, key, n) == 0 && p[1 + n] == '=')
            return say(&d->k, "%.*s", (int)strcspn(p + n + 2, "&"), p + n + 2);
    return "";
}

static const char *code_of(struct dance *d, const char *who)
{
    const char *code = back(d, go(d, who, ASKED), "code");
    CHECK(strncmp(code, "nsa_", 4) == 0);
    return code;
}

static struct answer *post(struct dance *d, const char *form)
{
    return ask_so(
        &d->k, &(struct question){ .request = "POST /oauth/token", .bytes = form, .type = FORM });
}

static struct answer *redeem(struct dance *d, const char *code, const char *more)
{
    return post(d, say(&d->k,
                       "grant_type=authorization_code&client_id=hub&client_secret=%s&code=%s&"
                       "redirect_uri=%s&code_verifier=%s",
                       d->secret, code, HUB_CODED, more ? more : VERIFIER));
}

static const char *token_of(struct dance *d, const char *who)
{
    return at_str(CHECK_STATUS(redeem(d, code_of(d, who), NULL), 200), "access_token");
}

static struct answer *userinfo(struct dance *d, const char *token)
{
    struct question q = { .request = "GET /oauth/userinfo" };
    q.header[0] = (struct asked_header){ "Authorization", say(&d->k, "Bearer %s", token) };
    return ask_so(&d->k, &q);
}

/* A refusal in OAuth's own words. */
static void refused(struct answer *a, int status, const char *error)
{
    CHECK_STATUS(a, status);
    CHECK_STR(at_str(a, "error"), error);
    CHECK(strlen(at_str(a, "error_description")) > 6);
    CHECK_STR(a->type, "application/json");
    const char *cache = header_of(a, "Cache-Control"); /* the server's own is no-store */
    CHECK(!*cache || strcmp(cache, "no-store") == 0);
}

/* ---- what works ---- */

static void a_tool_learns_who_has_signed_in(void)
{
    struct dance d;
    begin(&d);
    struct answer *a = CHECK_STATUS(redeem(&d, code_of(&d, d.ana), NULL), 200);
    CHECK_STR(at_str(a, "token_type"), "Bearer");
    CHECK_INT(at_int(a, "expires_in"), 600);
    CHECK_STR(at_str(a, "scope"), "profile email groups");
    CHECK_STR(header_of(a, "Cache-Control"), "no-store");
    a = CHECK_STATUS(userinfo(&d, at_str(a, "access_token")), 200);
    CHECK_STR(at_str(a, "sub"), "ana");
    CHECK_STR(at_str(a, "preferred_username"), "ana");
    CHECK_STR(at_str(a, "name"), "Ana");
    CHECK_STR(at_str(a, "email"), "ana@lab.example");
    CHECK_INT(at_len(a, "groups"), 3);
    CHECK_HAS(a->text, "\"vision:lead\"");
    CHECK_HAS(a->text, "\"role\"");
    asking_end(&d.k);
}

static void roles_on_the_site_are_groups_of_their_own_and_no_tenant_looks_like_one(void)
{
    struct dance d;
    begin(&d);
    CHECK_HAS(userinfo(&d, token_of(&d, asking_session(&d.k, "oda")))->text, "\"role:operator\"");
    CHECK(!strstr(userinfo(&d, token_of(&d, d.ana))->text, "\"role:"));
    asking_end(&d.k);
}

static void state_comes_back_and_the_query_of_the_registered_address_stays(void)
{
    struct dance d;
    begin(&d);
    struct answer *a = go(&d, d.ana, ASKED);
    CHECK(strncmp(header_of(a, "Location"), HUB "&", strlen(HUB) + 1) == 0);
    CHECK_STR(back(&d, a, "state"), "s%20t");
    CHECK_STR(back(&d, a, "tool"), "1");
    static const char *const states[] = { "%22%3Cscript%3E", "%2541%2Bb", "%C3%A9%26%3D" };
    for (size_t i = 0; i < ARRAY_LEN(states); i++)
        CHECK_STR(back(&d,
                       go(&d, d.ana, say(&d.k, "%.*s%s", (int)strlen(ASKED) - 5, ASKED, states[i])),
                       "state"),
                  states[i]);
    CHECK_STR(back(&d, go(&d, d.ana, say(&d.k, "%.*s", (int)strlen(ASKED) - 12, ASKED)), "state"),
              "");
    asking_end(&d.k);
}

static void who_is_not_signed_in_is_sent_to_sign_in_and_comes_back_with_the_same_request(void)
{
    struct dance d;
    begin(&d);
    struct answer *a = CHECK_STATUS(go(&d, NULL, ASKED), 303);
    CHECK(strncmp(header_of(a, "Location"), HOME "/signin?next=", strlen(HOME) + 13) == 0);
    CHECK_HAS(header_of(a, "Location"), "%2Foauth%2Fauthorize%3F");
    a = go(&d, "nss_0000000000000000000000000000000000000000000000000000000000000000", ASKED);
    CHECK_HAS(header_of(CHECK_STATUS(a, 303), "Location"), "/signin?next=");
    a = go(&d, NULL, ASKED "&prompt=none");
    CHECK_STR(back(&d, a, "error"), "login_required");
    CHECK_STR(back(&d, a, "state"), "s%20t");
    asking_end(&d.k);
}

static void parameters_that_are_not_known_are_let_be(void)
{
    struct dance d;
    begin(&d);
    const char *code = back(&d, go(&d, d.ana, ASKED "&nonce=1&colour=red"), "code");
    CHECK_STATUS(redeem(&d, code, VERIFIER "&resource=x"), 200);
    asking_end(&d.k);
}

static void the_places_are_told_at_the_well_known_address(void)
{
    struct dance d;
    begin(&d);
    struct answer *a =
        CHECK_STATUS(ask(&d.k, NULL, "GET /.well-known/oauth-authorization-server"), 200);
    CHECK_STR(at_str(a, "issuer"), HOME);
    CHECK_STR(at_str(a, "authorization_endpoint"), HOME "/oauth/authorize");
    CHECK_STR(at_str(a, "token_endpoint"), HOME "/oauth/token");
    CHECK_STR(at_str(a, "userinfo_endpoint"), HOME "/oauth/userinfo");
    CHECK_STR(at_str(a, "code_challenge_methods_supported.0"), "S256");
    asking_end(&d.k);
}

/* ---- nobody is sent where nobody registered ---- */

static void a_wrong_client_or_address_is_shown_and_nobody_is_sent_anywhere(void)
{
    static const char *const tries[] = {
        "client_id=nobody&redirect_uri=" HUB_CODED,
        "redirect_uri=" HUB_CODED,
        "client_id=&redirect_uri=" HUB_CODED,
        "client_id=hub",
        "client_id=hub&redirect_uri=",
        "client_id=hub&redirect_uri=" HUB_CODED "%26x%3D1",
        "client_id=hub&redirect_uri=HTTPS%3A%2F%2FHUB.EXAMPLE%2Fhub%2Foauth_callback%3Ftool%3D1",
        "client_id=hub&redirect_uri=https%3A%2F%2Fhub.example%2Fhub%2Foauth_callback",
        "client_id=hub&redirect_uri=" HUB_CODED "%23x",
        "client_id=hub&redirect_uri=https%3A%2F%2Fevil.example%2F",
        "client_id=hub&redirect_uri=https%3A%2F%2Fhub.example%40evil.example%2F",
        "client_id=hub&redirect_uri=%2F%2Fevil.example",
        "client_id=hub&redirect_uri=%20" HUB_CODED,
        "client_id=hub&redirect_uri=" HUB_CODED "%20",
        "client_id=hub&redirect_uri=javascript%3Aalert(1)",
        "client_id=hub&redirect_uri=https%3A%2F%2Fhub.example",
        "client_id=hub&redirect_uri=https%3A%2F%2Fhub.example.evil.example%2Fhub%2Foauth_callback%"
        "3Ftool%3D1",
        "client_id=hub&redirect_uri=%2F",
        "client_id=hub&redirect_uri=" HUB_CODED "%2F..%2Fx",
        "client_id=hub&redirect_uri=http%3A%2F%2F127.0.0.1%3A9%2Fback",
        "client_id=hub&redirect_uri=" HUB_CODED "&redirect_uri=x",
        "client_id=hub&client_id=x&redirect_uri=" HUB_CODED,
    };
    static const char *const more[] = { "", "&response_type=token", "&prompt=none",
                                        "&response_type=code" };
    struct dance d;
    begin(&d);
    for (size_t i = 0; i < ARRAY_LEN(tries) * ARRAY_LEN(more) * 2; i++) {
        const char *query =
            say(&d.k, "%s%s", tries[i / 2 / ARRAY_LEN(more)], more[i / 2 % ARRAY_LEN(more)]);
        struct answer *a = go(&d, i % 2 ? d.ana : NULL, query);
        if (a->status != 400 || *header_of(a, "Location") ||
            strcmp(a->type, "text/plain; charset=utf-8") != 0)
            test_fail(__FILE__, __LINE__, "%s: %d, to '%s': %s", query, a->status,
                      header_of(a, "Location"), a->text);
    }
    asking_end(&d.k);
}

#define PART(response, challenge, method)                                                          \
    response "client_id=hub&redirect_uri=" HUB_CODED "&state=s" challenge method
static void other_errors_go_back_to_the_tool_with_its_state_and_without_a_code(void)
{
    static const char *const rows[][2] = {
        { PART("response_type=token&", "&code_challenge=" CHALLENGE, "&code_challenge_method=S256"),
          "unsupported_response_type" },
        { PART("response_type=code%20token&", "&code_challenge=" CHALLENGE,
               "&code_challenge_method=S256"),
          "unsupported_response_type" },
        { PART("", "&code_challenge=" CHALLENGE, "&code_challenge_method=S256"),
          "invalid_request" },
        { PART("response_type=code&", "", "&code_challenge_method=S256"), "invalid_request" },
        { PART("response_type=code&", "&code_challenge=" CHALLENGE, ""), "invalid_request" },
        { PART("response_type=code&", "&code_challenge=" CHALLENGE, "&code_challenge_method=plain"),
          "invalid_request" },
        { PART("response_type=code&", "&code_challenge=short", "&code_challenge_method=S256"),
          "invalid_request" },
        { PART("response_type=code&", "&code_challenge=" CHALLENGE "x",
               "&code_challenge_method=S256"),
          "invalid_request" },
        { PART("response_type=code&", "&code_challenge=!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!",
               "&code_challenge_method=S256"),
          "invalid_request" },
        { ASKED "&scope=x&scope=y", "invalid_request" },
    };
    struct dance d;
    begin(&d);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct answer *a = go(&d, i % 2 ? d.ana : NULL, rows[i][0]);
        CHECK_STR(back(&d, a, "error"), rows[i][1]);
        CHECK(back(&d, a, "state")[0] == 's');
        CHECK_STR(back(&d, a, "code"), "");
        CHECK(strncmp(header_of(a, "Location"), "https://hub.example/", 20) == 0);
    }
    asking_end(&d.k);
}

static void a_line_end_in_state_is_no_header(void)
{
    struct dance d;
    begin(&d);
    struct answer *a = go(&d, d.ana, ASKED "%0D%0ASet-Cookie:%20nightshift=evil");
    CHECK_STR(header_of(CHECK_STATUS(a, 303), "Set-Cookie"), "");
    CHECK_HAS(back(&d, a, "state"), "%0D%0ASet-Cookie");
    asking_end(&d.k);
}

static const char *session_by(struct dance *d, const char *token)
{
    struct answer *a =
        ask_with(&d->k, NULL, "POST /v1/session", say(&d->k, "{'token':'%s'}", token));
    const char *cookie = header_of(CHECK_STATUS(a, 204), "Set-Cookie") + strlen("nightshift=");
    return say(&d->k, "%.*s", (int)strcspn(cookie, ";"), cookie);
}

static void a_session_with_less_than_its_owners_rights_vouches_for_nobody(void)
{
    static const char *const less[] = { "'scopes':['read','jobs']", "'scopes':['read']",
                                        "'scopes':['read','jobs','manage'],'tenants':['vision']" };
    struct dance d;
    begin(&d);
    for (size_t i = 0; i < ARRAY_LEN(less); i++) {
        struct answer *a = go(&d, session_by(&d, asking_token(&d.k, "ana", less[i])), ASKED);
        CHECK_STR(back(&d, a, "error"), "access_denied");
        CHECK_STR(back(&d, a, "code"), "");
    }
    asking_end(&d.k);
}

/* ---- codes ---- */

static void a_code_that_comes_twice_is_refused_and_what_it_gave_is_void(void)
{
    struct dance d;
    begin(&d);
    const char *code = code_of(&d, d.ana), *token = at_str(redeem(&d, code, NULL), "access_token");
    CHECK_STATUS(userinfo(&d, token), 200);
    refused(redeem(&d, code, NULL), 400, "invalid_grant");
    refused(userinfo(&d, token), 401, "invalid_token");
    asking_end(&d.k);
}

static void a_verifier_that_is_wrong_uses_the_code_up(void)
{
    static const char *const wrong[] = {
        CHALLENGE, VERIFIER "x", "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjX",
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
    };
    struct dance d;
    begin(&d);
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        const char *code = code_of(&d, d.ana);
        refused(redeem(&d, code, wrong[i]), 400, "invalid_grant");
        refused(redeem(&d, code, NULL), 400, "invalid_grant");
    }
    refused(redeem(&d, code_of(&d, d.ana), ""), 400, "invalid_request");
    asking_end(&d.k);
}

static void a_code_is_bound_to_its_address_and_to_its_client(void)
{
    struct dance d;
    begin(&d);
    const char *other = make_hub(&d, "other"), *code = code_of(&d, d.ana);
    refused(post(&d, say(&d.k,
                         "grant_type=authorization_code&client_id=other&client_secret=%s&code=%s&"
                         "redirect_uri=%s&code_verifier=" VERIFIER,
                         other, code, HUB_CODED)),
            400, "invalid_grant");
    CHECK_STATUS(redeem(&d, code, NULL), 200); /* the right one still can */
    code = code_of(&d, d.ana);
    refused(post(&d, say(&d.k,
                         "grant_type=authorization_code&client_id=hub&client_secret=%s&code=%s&"
                         "redirect_uri=%sx&code_verifier=" VERIFIER,
                         d.secret, code, HUB_CODED)),
            400, "invalid_grant");
    refused(
        redeem(&d, "nsa_0000000000000000000000000000000000000000000000000000000000000000", NULL),
        400, "invalid_grant");
    asking_end(&d.k);
}

static void a_wrong_secret_none_or_two_ways_at_once_are_refused_and_the_code_stays_good(void)
{
    struct dance d;
    begin(&d);
    const char *code = code_of(&d, d.ana), *right = d.secret;
    const char *wrong[] = { "nsc_0000000000000000000000000000000000000000000000000000000000000000",
                            "", say(&d.k, "%s0", right),
                            say(&d.k, "%.*s", (int)strlen(right) - 1, right) };
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        d.secret = wrong[i];
        refused(redeem(&d, code, NULL), 401, "invalid_client");
    }
    d.secret = right;
    struct question q = {
        .request = "POST /oauth/token",
        .type = FORM,
        .bytes = say(&d.k, "grant_type=authorization_code&code=%s&client_secret=%s", code, right)
    };
    q.header[0] = (struct asked_header){ "Authorization", "Basic aHViOng=" };
    refused(ask_so(&d.k, &q), 400, "invalid_request");
    q.bytes = say(&d.k,
                  "grant_type=authorization_code&code=%s&redirect_uri=%s"
                  "&code_verifier=" VERIFIER,
                  code, HUB_CODED);
    struct answer *a = ask_so(&d.k, &q);
    refused(a, 401, "invalid_client");
    CHECK(strncmp(header_of(a, "WWW-Authenticate"), "Basic", 5) == 0);
    CHECK_STATUS(redeem(&d, code, NULL), 200);
    asking_end(&d.k);
}

static void the_form_must_be_one_small_and_say_everything_once(void)
{
    struct dance d;
    begin(&d);
    static const char *const forms[] = {
        "code=%zz", "code=%00", "x=y",
        "grant_type=authorization_code&grant_type=x&code=1&redirect_uri=x&code_verifier=y"
    };
    for (size_t i = 0; i < ARRAY_LEN(forms); i++)
        refused(post(&d, forms[i]), 400, "invalid_request");
    char large[8300];
    memset(large, 'a', sizeof large - 1);
    memcpy(large, "x=", 2);
    large[sizeof large - 1] = '\0';
    refused(post(&d, large), 400, "invalid_request");
    refused(ask_so(&d.k, &(struct question){ .request = "POST /oauth/token",
                                             .bytes = "{}",
                                             .type = "application/json" }),
            400, "invalid_request");
    const char *code = code_of(&d, d.ana);
    refused(post(&d, say(&d.k,
                         "grant_type=password&client_id=hub&client_secret=%s&code=%s&redirect_uri="
                         "x&code_verifier=y",
                         d.secret, code)),
            400, "unsupported_grant_type");
    asking_end(&d.k);
}

/* ---- tokens ---- */

static void such_a_token_is_good_for_userinfo_alone_and_an_api_token_is_none(void)
{
    struct dance d;
    begin(&d);
    const char *token = token_of(&d, asking_session(&d.k, "oda"));
    for (size_t i = 0; i < api_routes_n; i++) {
        char path[200];
        snprintf(path, sizeof path, "%s", api_routes[i].path);
        for (char *p = path; *p; p++)
            *p = *p == ':' ? '1' : *p;
        struct question q = { .request = say(&d.k, "%s %s", api_routes[i].method, path) };
        q.header[0] = (struct asked_header){ "Authorization", say(&d.k, "Bearer %s", token) };
        if (api_routes[i].access != ACCESS_PUBLIC)
            CHECK_STATUS(ask_so(&d.k, &q), 401);
    }
    CHECK_STATUS(ask_with(&d.k, NULL, "POST /v1/session", say(&d.k, "{'token':'%s'}", token)), 403);
    refused(userinfo(&d, asking_token(&d.k, "ana", "'scopes':['read']")), 401, "invalid_token");
    refused(userinfo(&d, d.ana), 401, "invalid_token");
    refused(userinfo(&d, ""), 401, "invalid_token");
    CHECK_STATUS(ask(&d.k, d.ana, "GET /oauth/userinfo"), 401);
    asking_end(&d.k);
}

static void who_is_disabled_or_removed_is_told_of_no_more(void)
{
    struct dance d;
    begin(&d);
    const char *token = token_of(&d, d.ana), *code = code_of(&d, d.ana);
    CHECK_STATUS(ask_with(&d.k, "root", "PUT /v1/users/ana", "{'disabled':true}"), 200);
    refused(userinfo(&d, token), 401, "invalid_token");
    refused(redeem(&d, code, NULL), 400, "invalid_grant");
    CHECK_HAS(header_of(go(&d, d.ana, ASKED), "Location"), "/signin");
    const char *oda = token_of(&d, asking_session(&d.k, "oda"));
    ask(&d.k, "root", "DELETE /v1/users/oda");
    refused(userinfo(&d, oda), 401, "invalid_token");
    asking_end(&d.k);
}

static void a_code_is_good_for_a_minute_and_a_token_for_ten(void)
{
    struct dance d;
    begin(&d);
    const char *late = code_of(&d, d.ana), *code = code_of(&d, d.ana);
    d.k.t.now_ms += 50000;
    const char *token = at_str(redeem(&d, code, NULL), "access_token");
    d.k.t.now_ms += 11000;
    refused(redeem(&d, late, NULL), 400, "invalid_grant");
    CHECK_STATUS(userinfo(&d, token), 200);
    d.k.t.now_ms += 600000;
    refused(userinfo(&d, token), 401, "invalid_token");
    asking_end(&d.k);
}

/* ---- clients ---- */

#define PUT_BAD "PUT /v1/clients/bad"
static void clients_are_for_administrators_and_their_addresses_are_checked(void)
{
    static const struct bad rows[] = {
        { PUT_BAD, "{'redirect_uris':['http://hub.example/']}", 400, "redirect_uris", "" },
        { PUT_BAD, "{'redirect_uris':['https://hub.example/#x']}", 400, "redirect_uris", "" },
        { PUT_BAD, "{'redirect_uris':['ftp://x/']}", 400, "redirect_uris", "" },
        { PUT_BAD, "{'redirect_uris':['/x']}", 400, "redirect_uris", "" },
        { PUT_BAD, "{'redirect_uris':['https://a@b/']}", 400, "redirect_uris", "" },
        { PUT_BAD, "{'redirect_uris':['javascript:x']}", 400, "redirect_uris", "" },
        { PUT_BAD, "{'redirect_uris':['']}", 400, "redirect_uris", "" },
        { PUT_BAD, "{'redirect_uris':[5]}", 400, "redirect_uris", "" },
        { PUT_BAD, "{'redirect_uris':[]}", 400, "redirect_uris", "a list of 1 to" },
        { PUT_BAD, "{}", 400, "redirect_uris", "" },
        { PUT_BAD, "{'redirect_uris':['https://a/'],'secret':'x'}", 400, "secret", "" },
        { PUT_BAD, "{'redirect_uris':['https://a/'],'secret':false,'new_secret':true}", 400,
          "new_secret", "" },
        { PUT_BAD, "{'redirect_uris':['https://a/'],'name':5}", 400, "name", "" },
        { PUT_BAD, "{'colour':1}", 400, "colour", "" },
        { "PUT /v1/clients/a:b", "{'redirect_uris':['https://a/']}", 400, "*", "" },
        { "DELETE /v1/clients/nobody", NULL, 404, "*", "there is no client 'nobody'" },
    };
    static const struct bad by_operator[] = {
        { "GET /v1/clients", NULL, 403, NULL, "'admin'" },
        { "PUT /v1/clients/x", "{'redirect_uris':['https://a/']}", 403, NULL, "'admin'" },
        { "DELETE /v1/clients/hub", NULL, 403, NULL, "'admin'" },
    };
    struct dance d;
    begin(&d);
    CHECK_BAD(&d.k, "root", rows);
    CHECK_BAD(&d.k, "oda", by_operator);
    CHECK_INT(at_len(ask(&d.k, "root", "GET /v1/clients"), "clients"), 1);
    asking_end(&d.k);
}

static void a_secret_is_shown_once_and_a_new_one_ends_the_old(void)
{
    struct dance d;
    begin(&d);
    struct answer *a = ask_with(&d.k, "root", "PUT /v1/clients/hub", "{'name':'The hub'}");
    CHECK_STR(at_str(CHECK_STATUS(a, 200), "secret"), "(none)");
    a = ask(&d.k, "root", "GET /v1/clients");
    CHECK_STR(at_str(a, "clients.0.name"), "The hub");
    CHECK_STR(at_str(a, "clients.0.has_secret"), "true");
    CHECK(!strstr(a->text, d.secret));
    CHECK_STATUS(redeem(&d, code_of(&d, d.ana), NULL), 200);
    const char *old = d.secret, *fresh = make_hub(&d, "hub"), *code = code_of(&d, d.ana);
    d.secret = old;
    refused(redeem(&d, code, NULL), 401, "invalid_client");
    d.secret = fresh;
    CHECK_STATUS(redeem(&d, code, NULL), 200);
    asking_end(&d.k);
}

static void a_public_client_does_it_with_pkce_alone(void)
{
    struct dance d;
    begin(&d);
    CHECK_STATUS(ask_with(&d.k, "root", "PUT /v1/clients/hub",
                          "{'redirect_uris':['" HUB "'],'secret':false}"),
                 200);
    const char *code = code_of(&d, d.ana);
    struct answer *a =
        post(&d, say(&d.k,
                     "grant_type=authorization_code&client_id=hub&code=%s&redirect_uri=%s"
                     "&code_verifier=" VERIFIER,
                     code, HUB_CODED));
    CHECK_STATUS(a, 200);
    d.secret = "nsc_made-up";
    refused(redeem(&d, code_of(&d, d.ana), NULL), 401, "invalid_client");
    asking_end(&d.k);
}

static void clients_survive_a_crash_codes_and_tokens_do_not(void)
{
    struct dance d;
    begin(&d);
    const char *token = token_of(&d, d.ana), *code = code_of(&d, d.ana);
    asking_again(&d.k);
    refused(userinfo(&d, token), 401, "invalid_token");
    refused(redeem(&d, code, NULL), 400, "invalid_grant");
    token = token_of(&d, d.ana);
    CHECK_STATUS(ask(&d.k, "root", "DELETE /v1/clients/hub"), 204);
    refused(userinfo(&d, token), 401, "invalid_token");
    CHECK_STATUS(go(&d, d.ana, ASKED), 400);
    asking_end(&d.k);
}

static const struct test tests[] = {
    { "a tool learns who has signed in: name, mail, groups", a_tool_learns_who_has_signed_in },
    { "roles on the site are groups of their own, and no tenant can look like one",
      roles_on_the_site_are_groups_of_their_own_and_no_tenant_looks_like_one },
    { "state comes back as it was, and the query of the registered address stays",
      state_comes_back_and_the_query_of_the_registered_address_stays },
    { "who is not signed in is sent to sign in, and comes back with the same request",
      who_is_not_signed_in_is_sent_to_sign_in_and_comes_back_with_the_same_request },
    { "parameters that are not known are let be", parameters_that_are_not_known_are_let_be },
    { "the places are told at the well-known address",
      the_places_are_told_at_the_well_known_address },
    { "a wrong client or address is shown, and nobody is sent anywhere",
      a_wrong_client_or_address_is_shown_and_nobody_is_sent_anywhere },
    { "other errors go back to the tool, with its state and without a code",
      other_errors_go_back_to_the_tool_with_its_state_and_without_a_code },
    { "a line end in state is no header", a_line_end_in_state_is_no_header },
    { "a session with less than its owner's rights vouches for nobody",
      a_session_with_less_than_its_owners_rights_vouches_for_nobody },
    { "a code that comes twice is refused, and what it gave is void",
      a_code_that_comes_twice_is_refused_and_what_it_gave_is_void },
    { "a verifier that is missing, wrong or the challenge itself is refused, and uses the code up",
      a_verifier_that_is_wrong_uses_the_code_up },
    { "a code is bound to its address and to its client",
      a_code_is_bound_to_its_address_and_to_its_client },
    { "a wrong secret, none, or two ways at once are refused; the code stays good",
      a_wrong_secret_none_or_two_ways_at_once_are_refused_and_the_code_stays_good },
    { "the form must be one, small, and say everything once",
      the_form_must_be_one_small_and_say_everything_once },
    { "such a token is good for userinfo alone, and an API token is none",
      such_a_token_is_good_for_userinfo_alone_and_an_api_token_is_none },
    { "who is disabled or removed is told of no more",
      who_is_disabled_or_removed_is_told_of_no_more },
    { "a code is good for a minute, a token for ten",
      a_code_is_good_for_a_minute_and_a_token_for_ten },
    { "clients are for administrators, and their addresses are checked",
      clients_are_for_administrators_and_their_addresses_are_checked },
    { "a secret is shown once, stays when the client is changed, and a new one ends the old",
      a_secret_is_shown_once_and_a_new_one_ends_the_old },
    { "a public client does it with PKCE alone, and has no secret",
      a_public_client_does_it_with_pkce_alone },
    { "clients survive a crash, codes and tokens do not; what is deleted is gone with its tokens",
      clients_survive_a_crash_codes_and_tokens_do_not },
};
TEST_CASES(tests)
