/* Tokens: made with what their maker has, shown once, gone when they are over. */
#include <stdio.h>

#include "tests/lib/asking.h"

#define DAY INT64_C(86400000)

static void begin(struct asking *k)
{
    asking_begin(k, NULL);
    asking_tenant(k, "vision", NULL);
    asking_tenant(k, "speech", NULL);
    asking_person(k, "ana", "vision", "member");
    asking_person(k, "adm", NULL, "admin");
    CHECK_STATUS(ask(k, "ana", "GET /v1/whoami"), 200);
}

static struct answer *make(struct asking *k, const char *who, const char *body)
{
    return ask_with(k, who, "POST /v1/tokens", body);
}

static void a_token_is_shown_once_and_listed_without_its_text(void)
{
    struct asking k;
    begin(&k);
    struct answer *a = CHECK_STATUS(make(&k, "ana", "{'name':'ci'}"), 201);
    const char *token = at_str(a, "token");
    CHECK(strncmp(token, "nst_", 4) == 0 && strlen(token) == 68);
    a = ask(&k, "ana", "GET /v1/tokens");
    const struct json *row = at_where(a, "tokens", "name", "ci");
    CHECK_STR(text_of(row, "user"), "ana");
    CHECK_STR(text_of(row, "scopes.0"), "read"); /* without a word: what looks and submits */
    CHECK_STR(text_of(row, "scopes.1"), "jobs");
    CHECK_STR(text_of(row, "scopes.2"), "(none)");
    CHECK_INT(int_of(row, "expires_ms"), k.t.now_ms + 365 * DAY);
    CHECK(!strstr(a->text, token) && !strstr(a->text, token + 4));
    asking_end(&k);
}

static void a_token_is_as_good_after_a_crash_and_over_when_its_time_is(void)
{
    struct asking k;
    begin(&k);
    const char *token = at_str(make(&k, "ana", "{'name':'short','expires':'1h'}"), "token");
    asking_again(&k);
    CHECK_STATUS(ask(&k, token, "GET /v1/whoami"), 200);
    k.t.now_ms += 3599999;
    CHECK_STATUS(ask(&k, token, "GET /v1/whoami"), 200);
    k.t.now_ms += 1;
    CHECK_REFUSED(ask(&k, token, "GET /v1/whoami"), 401, "denied", NULL, "");
    asking_end(&k);
}

static void never_is_a_time_too(void)
{
    struct asking k;
    begin(&k);
    const char *token = at_str(make(&k, "ana", "{'name':'long','expires':'never'}"), "token");
    CHECK_STR(
        text_of(at_where(ask(&k, "ana", "GET /v1/tokens"), "tokens", "name", "long"), "expires_ms"),
        "null");
    k.t.now_ms += 5000 * DAY;
    CHECK_STATUS(ask(&k, token, "GET /v1/whoami"), 200);
    asking_end(&k);
}

static void what_is_wrong_is_refused_by_field_and_nothing_is_made(void)
{
    static const struct bad rows[] = {
        { "POST /v1/tokens", "{'name':''}", 400, "name", "name" },
        { "POST /v1/tokens", "{'name':'a b'}", 400, "name", "name" },
        { "POST /v1/tokens", "{'name':5}", 400, "name", "name" },
        { "POST /v1/tokens", "{'name':'a\\u0000b'}", 400, "name", "name" },
        { "POST /v1/tokens",
          "{'name':'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'}", 400,
          "name", "name" },
        { "POST /v1/tokens", "{'name':'n','user':'.x'}", 400, "user", "user" },
        { "POST /v1/tokens", "{'name':'n','user':[]}", 400, "user", "user" },
        { "POST /v1/tokens", "{'name':'n','expires':'0s'}", 400, "expires",
          "above 0 and at most ten years" },
        { "POST /v1/tokens", "{'name':'n','expires':''}", 400, "expires", "expires" },
        { "POST /v1/tokens", "{'name':'n','expires':'99999w'}", 400, "expires", "expires" },
        { "POST /v1/tokens", "{'name':'n','expires':5}", 400, "expires", "expires" },
        { "POST /v1/tokens", "{'name':'n','scopes':['king']}", 400, "scopes",
          "'king' is not known here" },
        { "POST /v1/tokens", "{'name':'n','scopes':[]}", 400, "scopes", "a list of 1 to" },
        { "POST /v1/tokens", "{'name':'n','scopes':'read'}", 400, "scopes", "a list of 1 to" },
        { "POST /v1/tokens", "{'name':'n','tenants':'vision'}", 400, "tenants", "a list" },
        { "POST /v1/tokens", "{'name':'n','tenants':['nowhere']}", 404, "tenants",
          "there is no tenant 'nowhere'" },
        { "POST /v1/tokens", "{'name':'n','colour':1}", 400, "colour", "colour" },
        { "DELETE /v1/tokens/none", NULL, 404, NULL, "has no token 'none' that you could delete" },
        { "DELETE /v1/tokens/t1?user=nobody", NULL, 404, NULL, "'nobody' has no token" },
        { "DELETE /v1/token", NULL, 409, NULL, "you are not known by a token" },
    };
    struct asking k;
    begin(&k);
    CHECK_BAD(&k, "root", rows);
    asking_end(&k);
}

static void a_token_never_makes_one_with_more_than_it_has(void)
{
    struct asking k;
    begin(&k);
    asking_person(&k, "adm", "vision", "member");
    const char *narrow = asking_token(&k, "adm", "'scopes':['read','manage'],'tenants':['vision']");
    CHECK_REFUSED(make(&k, narrow, "{'name':'x','scopes':['jobs']}"), 403, "denied", "scopes",
                  "it would have more than the token");
    CHECK_REFUSED(make(&k, narrow, "{'name':'x','scopes':['read'],'user':'ana'}"), 403, "denied",
                  "*", "");
    struct answer *a = CHECK_STATUS(make(&k, narrow, "{'name':'x','scopes':['read']}"), 201);
    const char *more = at_str(a, "token");
    CHECK_INT(at_len(ask(&k, more, "GET /v1/tenants"), "tenants"),
              1); /* what it is good for is inherited */
    CHECK_STATUS(make(&k, narrow, "{'name':'y','scopes':['read'],'tenants':['speech']}"), 404);
    CHECK_REFUSED(ask(&k, more, "GET /v1/users"), 403, "denied", NULL, "vision");
    asking_end(&k);
}

static void only_administrators_make_tokens_for_others(void)
{
    struct asking k;
    begin(&k);
    CHECK_REFUSED(make(&k, "ana", "{'name':'x','user':'adm'}"), 403, "denied", "*", "");
    struct answer *a = CHECK_STATUS(make(&k, "adm", "{'name':'x','user':'ana'}"), 201);
    CHECK_STR(at_str(ask(&k, at_str(a, "token"), "GET /v1/whoami"), "user"), "ana");
    CHECK(!at_where(ask(&k, "ana", "GET /v1/tokens"), "tokens", "user", "adm"));
    CHECK(at_where(ask(&k, "adm", "GET /v1/tokens"), "tokens", "user", "ana"));
    CHECK_STATUS(ask(&k, "ana", "DELETE /v1/tokens/t2?user=adm"), 404); /* not told */
    CHECK_STATUS(ask(&k, "adm", "DELETE /v1/tokens/x?user=ana"), 204);
    asking_end(&k);
}

static void a_name_is_taken_once_by_each(void)
{
    struct asking k;
    begin(&k);
    CHECK_STATUS(make(&k, "ana", "{'name':'ci'}"), 201);
    CHECK_REFUSED(make(&k, "ana", "{'name':'ci'}"), 409, "conflict", "*", "ci");
    CHECK_STATUS(make(&k, "adm", "{'name':'ci'}"), 201);
    CHECK_STATUS(ask(&k, "ana", "DELETE /v1/tokens/ci"), 204);
    CHECK_STATUS(make(&k, "ana", "{'name':'ci'}"), 201);
    asking_end(&k);
}

static void somebody_has_a_hundred_at_most(void)
{
    struct asking k;
    begin(&k);
    for (int i = 0; i < 99; i++) /* one is there */
        CHECK_STATUS(make(&k, "ana", say(&k, "{'name':'n%d'}", i)), 201);
    CHECK_REFUSED(make(&k, "ana", "{'name':'more'}"), 409, "conflict", NULL,
                  "'ana' has 100 tokens already");
    CHECK_STATUS(make(&k, "adm", "{'name':'more'}"), 201);
    asking_end(&k);
}

static void a_token_that_was_deleted_or_given_up_is_none_at_once_and_after_a_crash(void)
{
    struct asking k;
    begin(&k);
    const char *one = at_str(make(&k, "ana", "{'name':'one'}"), "token");
    const char *two = at_str(make(&k, "ana", "{'name':'two'}"), "token");
    CHECK_STATUS(ask(&k, "ana", "DELETE /v1/tokens/one"), 204);
    CHECK_STATUS(ask(&k, two, "DELETE /v1/token"), 204);
    for (int round = 0; round < 2; round++) {
        CHECK_STATUS(ask(&k, one, "GET /v1/whoami"), 401);
        CHECK_STATUS(ask(&k, two, "GET /v1/whoami"), 401);
        asking_again(&k);
    }
    asking_end(&k);
}

static void when_it_was_used_is_told(void)
{
    struct asking k;
    begin(&k);
    const char *token = at_str(make(&k, "ana", "{'name':'ci'}"), "token");
    CHECK_STR(
        text_of(at_where(ask(&k, "ana", "GET /v1/tokens"), "tokens", "name", "ci"), "used_ms"),
        "null");
    k.t.now_ms += 5000;
    ask(&k, token, "GET /v1/whoami");
    CHECK_INT(int_of(at_where(ask(&k, "ana", "GET /v1/tokens"), "tokens", "name", "ci"), "used_ms"),
              k.t.now_ms);
    asking_end(&k);
}

static void neither_a_tokens_text_nor_its_hash_is_in_the_audit(void)
{
    struct asking k;
    begin(&k);
    const char *token = at_str(make(&k, "ana", "{'name':'ci'}"), "token");
    ask(&k, "ana", "DELETE /v1/tokens/ci");
    struct answer *a = ask(&k, "root", "GET /v1/audit?who=ana");
    CHECK_STR(at_str(a, "rows.0.what"), "token.delete");
    CHECK_STR(at_str(a, "rows.1.what"), "token.create");
    CHECK(!strstr(a->text, token + 4));
    asking_end(&k);
}

static const struct test tests[] = {
    { "a token is shown once, and listed without its text",
      a_token_is_shown_once_and_listed_without_its_text },
    { "a token is as good after a crash, and over when its time is",
      a_token_is_as_good_after_a_crash_and_over_when_its_time_is },
    { "never is a time too", never_is_a_time_too },
    { "what is wrong is refused by field, and nothing is made",
      what_is_wrong_is_refused_by_field_and_nothing_is_made },
    { "a token never makes one with more than it has",
      a_token_never_makes_one_with_more_than_it_has },
    { "only administrators make tokens for others", only_administrators_make_tokens_for_others },
    { "a name is taken once by each", a_name_is_taken_once_by_each },
    { "somebody has a hundred at most", somebody_has_a_hundred_at_most },
    { "a token that was deleted or given up is none, at once and after a crash",
      a_token_that_was_deleted_or_given_up_is_none_at_once_and_after_a_crash },
    { "when it was used is told", when_it_was_used_is_told },
    { "neither a token's text nor its hash is in the audit",
      neither_a_tokens_text_nor_its_hash_is_in_the_audit },
};
TEST_CASES(tests)
