#include "signin/claims.h"

#include <stdio.h>

#include "tests/lib/test.h"

/* The person as JSON, or the reason why not, in *out. */
static const char *person(struct buf *out, const char *token, const char *more,
                          const struct claims_rule *rule)
{
    struct refusal r = { 0 };
    struct json_out w = { .b = out };
    AUTO(json_free_p) struct json_doc *t = token ? json_read(str_of(token), &r.e) : NULL;
    AUTO(json_free_p) struct json_doc *m = more ? json_read(str_of(more), &r.e) : NULL;
    CHECK((!token || t) && (!more || m));
    buf_truncate(out, 0);
    json_begin(&w, NULL, '{');
    int rc = claims_write(t ? json_root(t) : NULL, m ? json_root(m) : NULL, rule, &w, &r);
    json_end(&w, '}');
    return rc == 0 ? out->p : reason_name(r.why);
}

static void a_person_comes_from_both_sources(void)
{
    AUTO(buf_free) struct buf b = BUF(1u << 20);
    static const struct claims_rule plain = { 0 };
    CHECK_STR(person(&b, "{\"sub\":\"1\",\"preferred_username\":\"ana\"}",
                     "{\"sub\":\"1\",\"preferred_username\":\"no\",\"name\":\"Ana\","
                     "\"email\":\"ana@x\",\"groups\":[\"vision\",\"all\"]}",
                     &plain),
              "{\"subject\":\"1\",\"user\":\"ana\",\"name\":\"Ana\",\"mail\":\"ana@x\","
              "\"groups\":[\"vision\",\"all\"]}");
    CHECK_STR(person(&b, NULL, "{\"sub\":\"1\",\"preferred_username\":\"ana\"}", &plain),
              "{\"subject\":\"1\",\"user\":\"ana\",\"groups\":[]}");
    CHECK_STR(person(&b, "{\"sub\":\"1\"}", NULL, &plain), "no_claim");
    CHECK_STR(person(&b, "{\"preferred_username\":\"ana\"}", NULL, &plain), "bad_token");
    CHECK_STR(person(&b, "{\"sub\":\"1\",\"preferred_username\":\"a\\nb\"}", NULL, &plain),
              "no_claim");
    CHECK_STR(person(&b, "{\"sub\":\"1\",\"preferred_username\":[\"ana\"]}", NULL, &plain),
              "no_claim");
}

static void groups_may_lie_deeper(void)
{
    AUTO(buf_free) struct buf b = BUF(1u << 20);
    static const struct claims_rule deep = { "upn", "realm_access.roles" };
    static const struct claims_rule dotted = { "upn", "https://lab.example/groups" };
    CHECK_STR(person(&b, "{\"sub\":\"1\",\"upn\":\"ana\",\"realm_access\":{\"roles\":[\"x\"]}}",
                     NULL, &deep),
              "{\"subject\":\"1\",\"user\":\"ana\",\"groups\":[\"x\"]}");
    CHECK_STR(person(&b, "{\"sub\":\"1\",\"upn\":\"ana\",\"https://lab.example/groups\":\"x\"}",
                     NULL, &dotted),
              "{\"subject\":\"1\",\"user\":\"ana\",\"groups\":[\"x\"]}");
    CHECK_STR(person(&b, "{\"sub\":\"1\",\"upn\":\"ana\",\"realm_access\":7}", NULL, &deep),
              "{\"subject\":\"1\",\"user\":\"ana\",\"groups\":[]}");
    CHECK_STR(
        person(&b, "{\"sub\":\"1\",\"upn\":\"ana\",\"realm_access\":{\"roles\":[7]}}", NULL, &deep),
        "no_claim");
}

static void groups_are_bounded(void)
{
    AUTO(buf_free) struct buf b = BUF(1u << 20);
    AUTO(buf_free) struct buf token = BUF(1u << 20);
    static const struct claims_rule plain = { 0 };
    buf_addz(&token, "{\"sub\":\"1\",\"preferred_username\":\"ana\",\"groups\":[\"g\"");
    for (int i = 0; i < 1000; i++)
        buf_printf(&token, ",\"g%d\"", i);
    buf_addz(&token, "]}");
    CHECK_STR(person(&b, token.p, NULL, &plain), "too_many");
}

static void an_unverified_address_is_no_name(void)
{
    AUTO(buf_free) struct buf b = BUF(1u << 20);
    static const struct claims_rule mail = { "email", NULL };
    CHECK_STR(person(&b, "{\"sub\":\"1\",\"email\":\"a@x\",\"email_verified\":false}", NULL, &mail),
              "unverified_mail");
    CHECK_STR(
        person(&b, "{\"sub\":\"1\",\"email\":\"a@x\",\"email_verified\":\"no\"}", NULL, &mail),
        "unverified_mail");
    CHECK_STR(person(&b, "{\"sub\":\"1\",\"email\":\"a@x\",\"email_verified\":true}", NULL, &mail),
              "{\"subject\":\"1\",\"user\":\"a@x\",\"mail\":\"a@x\",\"groups\":[]}");
}

static const struct test tests[] = {
    { "a person comes from the token first, then from userinfo", a_person_comes_from_both_sources },
    { "groups may lie deeper, or have a dot in their name", groups_may_lie_deeper },
    { "groups are bounded", groups_are_bounded },
    { "an unverified mail address is nobody's name", an_unverified_address_is_no_name },
};
TEST_CASES(tests)
