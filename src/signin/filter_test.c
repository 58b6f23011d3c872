#include "signin/filter.h"

#include "tests/lib/test.h"

static const char *expand(struct buf *out, const char *template, const char *user, const char *dn)
{
    struct refusal r = { 0 };
    buf_truncate(out, 0);
    return filter_expand(template, user, dn, out, &r) == 0 ? out->p : reason_name(r.why);
}

static void names_and_dns_are_put_in(void)
{
    AUTO(buf_free) struct buf b = BUF(FILTER_MAX);
    CHECK_STR(expand(&b, "(uid=%u)", "ana", NULL), "(uid=ana)");
    CHECK_STR(expand(&b, "(&(a=%u)(b=%u))", "ana", NULL), "(&(a=ana)(b=ana))");
    CHECK_STR(expand(&b, "(member=%d)", "ana", "uid=ana,dc=lab"), "(member=uid=ana,dc=lab)");
    CHECK_STR(expand(&b, "(rate=100%%)", "ana", NULL), "(rate=100%)");
}

static void no_name_changes_what_is_searched(void)
{
    AUTO(buf_free) struct buf b = BUF(FILTER_MAX);
    CHECK_STR(expand(&b, "(uid=%u)", "*)(uid=*", NULL), "(uid=\\2a\\29\\28uid=\\2a)");
    CHECK_STR(expand(&b, "(uid=%u)", "a\\2a", NULL), "(uid=a\\5c2a)");
    CHECK_STR(expand(&b, "(uid=%u)", "%d%u", NULL), "(uid=%d%u)");
    CHECK_STR(expand(&b, "(uid=%u)", "\xc3\xa9\n", NULL), "(uid=\\c3\\a9\\0a)");
    CHECK_STR(expand(&b, "(member=%d)", "x", "cn=a (b)*,dc=lab"),
              "(member=cn=a \\28b\\29\\2a,dc=lab)");
}

static void an_unknown_mark_is_refused(void)
{
    AUTO(buf_free) struct buf b = BUF(FILTER_MAX);
    AUTO(buf_free) struct buf small = BUF(8);
    CHECK_STR(expand(&b, "(uid=%s)", "ana", NULL), "bad_request");
    CHECK_STR(expand(&b, "(uid=%", "ana", NULL), "bad_request");
    CHECK_STR(expand(&b, "(member=%d)", "ana", NULL), "bad_request");
    CHECK_STR(expand(&small, "(uid=%u)", "ana", NULL), "bad_request");
}

static void a_mark_is_seen(void)
{
    CHECK(filter_has("(uid=%u)", 'u') && !filter_has("(uid=%u)", 'd'));
    CHECK(!filter_has("(uid=%%u)", 'u') && filter_has("(a=%%%u)", 'u') && !filter_has("%", 'u'));
}

static const struct test tests[] = {
    { "names and DNs are put in", names_and_dns_are_put_in },
    { "no name changes what is searched", no_name_changes_what_is_searched },
    { "an unknown mark and a filter that is too long are refused", an_unknown_mark_is_refused },
    { "a mark is seen, and %% is none", a_mark_is_seen },
};
TEST_CASES(tests)
