#include "signin/validity.h"

#include "base/parse.h"

#define DAY_S 86400
#define AD_DISABLED 2 /* userAccountControl: ACCOUNTDISABLE */
#define AD_NEVER INT64_MAX
#define AD_TICKS_S INT64_C(10000000)    /* a tick is 100 ns */
#define AD_EPOCH_S INT64_C(11644473600) /* from 1601 to 1970 */
#define LOCKED_FOR_GOOD "000001010000Z" /* pwdAccountLockedTime */

static bool number(const char *text, int64_t *out)
{
    struct err ignored;
    return parse_i64(str_of(text), INT64_MIN, INT64_MAX, out, &ignored) == 0;
}

static bool ad_disabled(const char *text, int64_t now_s)
{
    int64_t flags;
    (void)now_s;
    return number(text, &flags) && (flags & AD_DISABLED);
}

static bool ad_expired(const char *text, int64_t now_s)
{
    int64_t ticks;
    return number(text, &ticks) && ticks > 0 && ticks != AD_NEVER &&
           ticks / AD_TICKS_S - AD_EPOCH_S <= now_s;
}

static bool shadow_expired(const char *text, int64_t now_s)
{
    int64_t day;
    return number(text, &day) && day >= 0 && now_s / DAY_S >= day;
}

static bool is_true(const char *text, int64_t now_s)
{
    (void)now_s;
    return strcasecmp(text, "true") == 0;
}

static bool locked_for_good(const char *text, int64_t now_s)
{
    (void)now_s;
    return strcmp(text, LOCKED_FOR_GOOD) == 0;
}

static const struct {
    const char *attr;
    bool (*invalid)(const char *text, int64_t now_s);
    enum reason why;
    const char *words;
} marks[] = {
    { "userAccountControl", ad_disabled, REASON_ACCOUNT_LOCKED, "the account is disabled" },
    { "accountExpires", ad_expired, REASON_ACCOUNT_EXPIRED, "the account has expired" },
    { "shadowExpire", shadow_expired, REASON_ACCOUNT_EXPIRED, "the account has expired" },
    { "nsAccountLock", is_true, REASON_ACCOUNT_LOCKED, "the account is locked" },
    { "pwdAccountLockedTime", locked_for_good, REASON_ACCOUNT_LOCKED, "the account is locked" },
};
_Static_assert(ARRAY_LEN(marks) == VALIDITY_COUNT, "a mark was added without its place");

void validity_attrs(const char *out[static VALIDITY_COUNT])
{
    for (size_t i = 0; i < VALIDITY_COUNT; i++)
        out[i] = marks[i].attr;
}

int validity_check(const char *const *const *values, int64_t now_s, struct refusal *r)
{
    for (size_t i = 0; i < VALIDITY_COUNT; i++)
        if (values[i][0] && marks[i].invalid(values[i][0], now_s))
            return refuse(r, marks[i].why, "%s", marks[i].words);
    return 0;
}
