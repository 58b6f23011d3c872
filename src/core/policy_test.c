#include "core/policy.h"

#include "tests/lib/test.h"

static void the_defaults_lie_within_their_bounds(void)
{
    struct policy p = policy_default();
    struct err e;
    CHECK(policy_check(&p, &e) == 0);
    for (size_t i = 0; policy_key(i); i++)
        CHECK(*policy_value(&p, policy_key(i)) == policy_key(i)->dflt);
    CHECK_INT(p.half_life_ms, 7 * INT64_C(86400000));
}

static void every_number_has_its_row(void)
{
    struct policy p = { 0 };
    size_t n = 0;
    for (; policy_key(n); n++) {
        CHECK(policy_key(n)->min < policy_key(n)->max && policy_key(n)->help[0]);
        *policy_value(&p, policy_key(n)) = (int64_t)n + 1;
    }
    CHECK(n * sizeof(int64_t) == sizeof p);
    for (size_t i = 0; i < n; i++) /* no two rows are one number */
        CHECK_INT(*policy_value(&p, policy_key(i)), i + 1);
}

static void a_number_out_of_bounds_is_refused_by_name(void)
{
    for (size_t i = 0; policy_key(i); i++) {
        const struct policy_key *k = policy_key(i);
        struct policy p = policy_default();
        struct err e = { 0 };
        *policy_value(&p, k) = k->min;
        CHECK(policy_check(&p, &e) == 0);
        *policy_value(&p, k) = k->max;
        CHECK(policy_check(&p, &e) == 0);
        *policy_value(&p, k) = k->min - 1;
        CHECK(policy_check(&p, &e) < 0 && e.code == ERR_INVALID && strstr(e.msg, k->name));
        *policy_value(&p, k) = k->max + 1;
        CHECK(policy_check(&p, &e) < 0 && e.code == ERR_INVALID && strstr(e.msg, k->name));
    }
}

static void a_refusal_says_what_is_allowed(void)
{
    struct policy p = policy_default();
    struct err e = { 0 };
    p.age_max_steps = 7;
    CHECK(policy_check(&p, &e) < 0);
    CHECK_STR(e.msg, "policy 'age_max_steps' is 7; it must lie between 0 and 3");
}

static const struct test tests[] = {
    { "the defaults lie within their bounds", the_defaults_lie_within_their_bounds },
    { "every number has its row", every_number_has_its_row },
    { "a number out of bounds is refused by name", a_number_out_of_bounds_is_refused_by_name },
    { "a refusal says what is allowed", a_refusal_says_what_is_allowed },
};
TEST_CASES(tests)
