#include "auth/oauth.h"

#include <sodium.h>
#include <stdio.h>

#include "tests/lib/test.h"

/* Of RFC 7636, appendix B. */
#define VERIFIER "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
#define CHALLENGE "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
#define HUB "https://hub.example/hub/oauth_callback"
#define SECRET "nsc_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void put(struct oauth *o, const char *id, const char *redirect, const char *secret)
{
    char name[] = "A tool", back[OAUTH_REDIRECT_MAX], own[OAUTH_ID_MAX + 1], *list[] = { back };
    struct oauth_client c = { .id = own, .name = name, .redirect = list, .redirects = 1 };
    struct err e;
    snprintf(back, sizeof back, "%s", redirect);
    snprintf(own, sizeof own, "%s", id);
    c.has_secret = secret != NULL;
    if (secret)
        auth_hash_key(str_of(secret), c.hash);
    CHECK(oauth_put_client(o, &c, &e) == 0);
}

static struct oauth *two_tools(void)
{
    if (sodium_init() < 0)
        abort();
    struct oauth *o = oauth_new();
    put(o, "hub", HUB, SECRET);
    put(o, "app", "http://127.0.0.1:9/back", NULL);
    return o;
}

static struct oauth_redeem give(struct oauth *o, const char *user, int64_t now_ms,
                                char code[static KEY_TEXT_BYTES])
{
    struct err e;
    struct oauth_ask a = { STR("hub"), STR(HUB), str_of(user), STR(CHALLENGE) };
    CHECK_INT(oauth_give_code(o, &a, now_ms, code, &e), OAUTH_NONE);
    CHECK(strncmp(code, OAUTH_CODE_PREFIX, 4) == 0);
    return (struct oauth_redeem){ STR("hub"), STR(SECRET), str_of(code), STR(HUB), STR(VERIFIER) };
}

static enum oauth_error redeem(struct oauth *o, const struct oauth_redeem *r, int64_t now_ms,
                               char token[static KEY_TEXT_BYTES])
{
    struct err e = { 0 };
    enum oauth_error bad = oauth_redeem(o, r, now_ms, token, &e);
    CHECK(!bad == (e.code == ERR_NONE) && (!bad || e.hint[0]));
    return bad;
}

static void a_code_gives_a_token_that_tells_whom_it_is_about(void)
{
    AUTO(oauth_free_p) struct oauth *o = two_tools();
    char code[KEY_TEXT_BYTES], token[KEY_TEXT_BYTES];
    struct oauth_holder who;
    struct oauth_redeem r = give(o, "ana", 1000, code);
    CHECK_INT(redeem(o, &r, 1000 + OAUTH_CODE_MS - 1, token), OAUTH_NONE);
    CHECK(strncmp(token, OAUTH_TOKEN_PREFIX, 4) == 0);
    int64_t end_ms = 1000 + OAUTH_CODE_MS - 1 + OAUTH_TOKEN_MS;
    CHECK(oauth_holder_of(o, str_of(token), end_ms - 1, &who));
    CHECK_STR(who.user, "ana");
    CHECK_INT(who.since_ms, 1000);
    CHECK(!oauth_holder_of(o, str_of(token), end_ms, &who));
    CHECK(!oauth_holder_of(o, str_of(code), 2000, &who)); /* a code is no token */
    CHECK(!oauth_holder_of(o, STR(""), 2000, &who));
}

static void a_code_that_comes_twice_takes_its_token_with_it(void)
{
    AUTO(oauth_free_p) struct oauth *o = two_tools();
    char code[KEY_TEXT_BYTES], token[KEY_TEXT_BYTES], other[KEY_TEXT_BYTES];
    struct oauth_holder who;
    struct oauth_redeem r = give(o, "ana", 1000, code);
    CHECK_INT(redeem(o, &r, 2000, token), OAUTH_NONE);
    CHECK(oauth_holder_of(o, str_of(token), 3000, &who));
    CHECK_INT(redeem(o, &r, 3000 + OAUTH_CODE_MS, other), OAUTH_INVALID_GRANT);
    CHECK(!oauth_holder_of(o, str_of(token), 3000 + OAUTH_CODE_MS, &who));
    CHECK_INT(redeem(o, &r, 4000, other), OAUTH_INVALID_GRANT);
}

static void what_does_not_belong_to_a_code_is_refused(void)
{
    static const struct {
        struct str client, secret, redirect, verifier;
        int64_t after_ms;
        enum oauth_error want;
        bool goes_on; /* the right client can still use it */
    } rows[] = {
        { STR("hub"), STR(SECRET), STR(HUB), STR(""), 0, OAUTH_INVALID_GRANT, false },
        { STR("hub"), STR(SECRET), STR(HUB), STR(CHALLENGE), 0, OAUTH_INVALID_GRANT, false },
        { STR("hub"), STR(SECRET), STR(HUB), STR(VERIFIER "x"), 0, OAUTH_INVALID_GRANT, false },
        { STR("hub"), STR(SECRET), STR(HUB), STR("short"), 0, OAUTH_INVALID_GRANT, false },
        { STR("hub"), STR(SECRET), STR(HUB "/"), STR(VERIFIER), 0, OAUTH_INVALID_GRANT, false },
        { STR("hub"), STR(SECRET), STR(""), STR(VERIFIER), 0, OAUTH_INVALID_GRANT, false },
        { STR("hub"), STR(SECRET), STR(HUB), STR(VERIFIER), OAUTH_CODE_MS, OAUTH_INVALID_GRANT,
          false },
        { STR("app"), { 0 }, STR(HUB), STR(VERIFIER), 0, OAUTH_INVALID_GRANT, true },
        { STR("hub"), STR("nsc_wrong"), STR(HUB), STR(VERIFIER), 0, OAUTH_INVALID_CLIENT, true },
        { STR("hub"), STR(""), STR(HUB), STR(VERIFIER), 0, OAUTH_INVALID_CLIENT, true },
        { STR("hub"), { 0 }, STR(HUB), STR(VERIFIER), 0, OAUTH_INVALID_CLIENT, true },
        { STR("app"), STR(SECRET), STR(HUB), STR(VERIFIER), 0, OAUTH_INVALID_CLIENT, true },
        { STR("nobody"), STR(SECRET), STR(HUB), STR(VERIFIER), 0, OAUTH_INVALID_CLIENT, true },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(oauth_free_p) struct oauth *o = two_tools();
        char code[KEY_TEXT_BYTES], token[KEY_TEXT_BYTES];
        struct oauth_redeem right = give(o, "ana", 1000, code), r = right;
        r.client = rows[i].client;
        r.secret = rows[i].secret;
        r.redirect = rows[i].redirect;
        r.verifier = rows[i].verifier;
        CHECK_INT(redeem(o, &r, 1000 + rows[i].after_ms, token), rows[i].want);
        CHECK_INT(redeem(o, &right, 1000 + rows[i].after_ms, token),
                  rows[i].goes_on ? OAUTH_NONE : OAUTH_INVALID_GRANT);
    }
}

static void a_public_client_needs_its_verifier_only(void)
{
    AUTO(oauth_free_p) struct oauth *o = two_tools();
    char code[KEY_TEXT_BYTES], token[KEY_TEXT_BYTES];
    struct err e;
    struct oauth_ask a = { STR("app"), STR("http://127.0.0.1:9/back"), STR("ana"), STR(CHALLENGE) };
    CHECK_INT(oauth_give_code(o, &a, 1, code, &e), OAUTH_NONE);
    struct oauth_redeem r = {
        .client = a.client, .code = str_of(code), .redirect = a.redirect, .verifier = STR(VERIFIER)
    };
    CHECK_INT(redeem(o, &r, 2, token), OAUTH_NONE);
}

static void a_user_has_so_many_and_the_oldest_goes(void)
{
    AUTO(oauth_free_p) struct oauth *o = two_tools();
    char code[OAUTH_GRANTS_OF_USER + 1][KEY_TEXT_BYTES], token[KEY_TEXT_BYTES];
    struct oauth_redeem r[OAUTH_GRANTS_OF_USER + 1];
    for (size_t i = 0; i < ARRAY_LEN(r); i++)
        r[i] = give(o, "ana", 1000 + (int64_t)i, code[i]);
    CHECK_INT(redeem(o, &r[0], 2000, token), OAUTH_INVALID_GRANT);
    CHECK_INT(redeem(o, &r[1], 2000, token), OAUTH_NONE);
    CHECK_INT(redeem(o, &r[OAUTH_GRANTS_OF_USER], 2000, token), OAUTH_NONE);
}

static void a_full_table_is_said_and_empties_with_time(void)
{
    AUTO(oauth_free_p) struct oauth *o = two_tools();
    char code[KEY_TEXT_BYTES], user[32];
    struct err e;
    for (int i = 0; i < OAUTH_GRANTS_MAX; i++) {
        snprintf(user, sizeof user, "user%d", i);
        give(o, user, 1000, code);
    }
    struct oauth_ask a = { STR("hub"), STR(HUB), STR("ana"), STR(CHALLENGE) };
    CHECK_INT(oauth_give_code(o, &a, 1001, code, &e), OAUTH_TEMPORARILY_UNAVAILABLE);
    CHECK_INT(oauth_give_code(o, &a, 1000 + OAUTH_CODE_MS, code, &e), OAUTH_NONE);
}

static void what_is_dropped_takes_codes_and_tokens_along(void)
{
    AUTO(oauth_free_p) struct oauth *o = two_tools();
    char code[2][KEY_TEXT_BYTES], token[2][KEY_TEXT_BYTES];
    struct oauth_holder who;
    struct oauth_redeem r = give(o, "ana", 1, code[0]), s = give(o, "ben", 1, code[1]);
    CHECK(!redeem(o, &r, 2, token[0]) && !redeem(o, &s, 2, token[1]));
    oauth_drop_user(o, STR("ana"));
    CHECK(!oauth_holder_of(o, str_of(token[0]), 3, &who));
    CHECK(oauth_holder_of(o, str_of(token[1]), 3, &who));
    CHECK(oauth_drop_client(o, STR("hub")) && !oauth_drop_client(o, STR("hub")));
    CHECK(!oauth_holder_of(o, str_of(token[1]), 3, &who));
    CHECK(!oauth_find_client(o, STR("hub")) && oauth_find_client(o, STR("app")));
}

static void people_are_sent_back_to_safe_addresses_only(void)
{
    static const struct {
        const char *uri;
        bool good;
    } rows[] = {
        { HUB, true },
        { "https://hub.example/x?tool=1", true },
        { "http://127.0.0.1:8000/hub/oauth_callback", true },
        { "http://localhost:3000/login/generic_oauth", true },
        { "http://[::1]:8000/", true },
        { "http://hub.example/hub/oauth_callback", false },
        { "http://localhost.evil.example/", false },
        { "https://hub.example/#x", false },
        { "https://hub.example@evil.example/", false },
        { "javascript:alert(1)", false },
        { "myapp://back", false },
        { "/hub/oauth_callback", false },
        { "https://hub.example/a\r\nSet-Cookie: x", false },
        { "", false },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err e;
        if ((oauth_check_redirect(str_of(rows[i].uri), &e) == 0) != rows[i].good)
            test_fail(__FILE__, __LINE__, "%s", rows[i].uri);
    }
    AUTO(oauth_free_p) struct oauth *o = two_tools();
    const struct oauth_client *c = oauth_find_client(o, STR("hub"));
    CHECK(oauth_has_redirect(c, STR(HUB)) && !oauth_has_redirect(c, STR(HUB "?a=b")));
    CHECK(!oauth_has_redirect(c, STR(HUB "/")) && !oauth_has_redirect(c, STR("HTTPS" HUB)));
    CHECK(!oauth_has_redirect(c, STR("https://hub.example/hub/")));
}

static void a_client_may_say_its_secret_in_a_header(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct str id = STR("?"), secret = STR("?");
    CHECK(oauth_read_basic(STR("Basic aHViOmE6Yg=="), &a, &id, &secret));
    CHECK(str_is(id, "hub") && str_is(secret, "a:b"));
    CHECK(oauth_read_basic(STR("basic aHViOg=="), &a, &id, &secret));
    CHECK(str_is(id, "hub") && secret.p && secret.n == 0);
    static const char *const bad[] = { "",           "Basic ",
                                       "Basic aHVi", "Bearer aHViOmE=",
                                       "Basic a b:", "Basic aHViOmE",
                                       "Basic %%",   "Basic	aHViOmE=" };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK(!oauth_read_basic(str_of(bad[i]), &a, &id, &secret));
}

static void ids_are_plain(void)
{
    struct err e;
    CHECK(oauth_check_id(STR("jupyterhub-2.lab_1"), &e) == 0);
    CHECK(oauth_check_id(STR(""), &e) < 0 && oauth_check_id(STR("a b"), &e) < 0);
    CHECK(oauth_check_id(STR(".a"), &e) < 0 && oauth_check_id(STR("a/b"), &e) < 0);
    CHECK(oauth_check_id(STR("a:b"), &e) < 0 && oauth_check_id(STR("a\0b"), &e) < 0);
}

static void a_client_comes_back_from_the_store(void)
{
    AUTO(oauth_free_p) struct oauth *o = two_tools(), *q = oauth_new();
    AUTO(buf_free) struct buf b = BUF(65536);
    struct err e;
    oauth_client_write(oauth_find_client(o, STR("hub")), &b);
    CHECK(!strstr(b.p, "nsc_"));
    CHECK(oauth_read_client(q, STR("hub"), buf_str(&b), &e) == 0);
    const struct oauth_client *c = oauth_find_client(q, STR("hub"));
    CHECK(c && c->has_secret && c->redirects == 1 && oauth_has_redirect(c, STR(HUB)));
    CHECK(memcmp(c->hash, oauth_find_client(o, STR("hub"))->hash, KEY_HASH_BYTES) == 0);
    buf_truncate(&b, 0);
    oauth_client_write(oauth_find_client(o, STR("app")), &b);
    CHECK(oauth_read_client(q, STR("app"), buf_str(&b), &e) == 0);
    CHECK(!oauth_find_client(q, STR("app"))->has_secret);
    CHECK(oauth_read_client(q, STR("x"), STR("{\"name\":\"x\",\"hash\":\"12\"}"), &e) < 0);
    CHECK(oauth_read_client(q, STR("x"), STR("[]"), &e) < 0);
}

static void there_are_only_so_many_clients(void)
{
    AUTO(oauth_free_p) struct oauth *o = two_tools();
    char id[32], name[] = "one more", *none[1] = { NULL };
    struct err e;
    for (int i = 2; i < OAUTH_CLIENTS_MAX; i++) {
        snprintf(id, sizeof id, "tool%d", i);
        put(o, id, HUB, NULL);
    }
    snprintf(id, sizeof id, "beyond");
    struct oauth_client c = { .id = id, .name = name, .redirect = none };
    CHECK(oauth_put_client(o, &c, &e) < 0 && e.code == ERR_CONFLICT);
    snprintf(id, sizeof id, "hub"); /* one that is there can still be changed */
    CHECK(oauth_put_client(o, &c, &e) == 0);
}

static const struct test tests[] = {
    { "a code gives a token that tells whom it is about",
      a_code_gives_a_token_that_tells_whom_it_is_about },
    { "a code that comes twice takes its token with it",
      a_code_that_comes_twice_takes_its_token_with_it },
    { "what does not belong to a code is refused", what_does_not_belong_to_a_code_is_refused },
    { "a public client needs its verifier only", a_public_client_needs_its_verifier_only },
    { "a user has so many, and the oldest goes", a_user_has_so_many_and_the_oldest_goes },
    { "a full table is said, and empties with time", a_full_table_is_said_and_empties_with_time },
    { "what is dropped takes codes and tokens along",
      what_is_dropped_takes_codes_and_tokens_along },
    { "people are sent back to safe addresses only", people_are_sent_back_to_safe_addresses_only },
    { "a client may say its secret in a header", a_client_may_say_its_secret_in_a_header },
    { "ids are plain", ids_are_plain },
    { "a client comes back from the store", a_client_comes_back_from_the_store },
    { "there are only so many clients", there_are_only_so_many_clients },
};
TEST_CASES(tests)
