#include "signin/validity.h"

#include "tests/lib/test.h"

#define NOW INT64_C(1800000000)

/* With this one attribute, the others missing. */
static const char *verdict(const char *attr, const char *value)
{
    const char *attrs[VALIDITY_COUNT];
    const char *const none[] = { NULL }, *const one[] = { value, NULL };
    const char *const *values[VALIDITY_COUNT];
    struct refusal r = { 0 };
    bool found = false;
    validity_attrs(attrs);
    for (size_t i = 0; i < VALIDITY_COUNT; i++) {
        bool is = strcmp(attrs[i], attr) == 0;
        values[i] = is ? one : none;
        found = found || is;
    }
    CHECK(found == (attr[0] != '\0'));
    return validity_check(values, NOW, &r) == 0 ? "ok" : reason_name(r.why);
}

static void accounts_end_in_many_ways(void)
{
    static const struct {
        const char *attr, *value, *verdict;
    } rows[] = {
        { "", "", "ok" },
        { "userAccountControl", "512", "ok" },
        { "userAccountControl", "514", "account_locked" },
        { "userAccountControl", "x", "ok" },
        { "accountExpires", "0", "ok" },
        { "accountExpires", "9223372036854775807", "ok" },
        { "accountExpires", "134444735990000000", "account_expired" }, /* a second ago */
        { "accountExpires", "134444736010000000", "ok" },              /* in a second */
        { "shadowExpire", "-1", "ok" },
        { "shadowExpire", "20833", "account_expired" },
        { "shadowExpire", "20834", "ok" },
        { "nsAccountLock", "TRUE", "account_locked" },
        { "nsAccountLock", "false", "ok" },
        { "pwdAccountLockedTime", "000001010000Z", "account_locked" },
        { "pwdAccountLockedTime", "20260101120000Z", "ok" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        CHECK_STR(verdict(rows[i].attr, rows[i].value), rows[i].verdict);
}

static const struct test tests[] = {
    { "what directories say of an account's end is understood", accounts_end_in_many_ways },
};
TEST_CASES(tests)
