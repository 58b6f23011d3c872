#include "daemon/numbers.h"

#include "base/yaml.h"
#include "tests/lib/test.h"

static int read_text(const char *text, struct policy *out, struct err *e)
{
    AUTO(json_free_p) struct json_doc *d = json_read(str_of(text), e);
    CHECK(d != NULL);
    return numbers_read(json_root(d), out, e);
}

static void without_a_word_they_are_the_defaults(void)
{
    struct policy p, dflt = policy_default();
    struct err e = { 0 };
    CHECK(numbers_read(NULL, &p, &e) == 0 && memcmp(&p, &dflt, sizeof p) == 0);
    CHECK(read_text("null", &p, &e) == 0 && memcmp(&p, &dflt, sizeof p) == 0);
    CHECK(read_text("{}", &p, &e) == 0 && memcmp(&p, &dflt, sizeof p) == 0);
}

static void every_number_is_set_as_people_write_it(void)
{
    struct policy p;
    struct err e = { 0 };
    CHECK(
        read_text("{\"half_life\":\"3d\",\"min_run_ms\":1500,\"thaw_run_ms\":\"5m\",\"review\":20,"
                  "\"take_back\":false,\"claims_max\":7,\"cpu_cost_milli\":\"25\"}",
                  &p, &e) == 0);
    CHECK_INT(p.half_life_ms, 3 * 86400000);
    CHECK_INT(p.min_run_ms, 1500);
    CHECK_INT(p.thaw_run_ms, 300000);
    CHECK_INT(p.review_ms, 20000); /* without a unit: seconds */
    CHECK_INT(p.take_back, 0);
    CHECK_INT(p.claims_max, 7);
    CHECK_INT(p.cpu_cost_milli, 25);
    CHECK(read_text("{\"take_back\":\"yes\"}", &p, &e) == 0 && p.take_back == 1);
    CHECK(read_text("{\"take_back\":\"no\"}", &p, &e) == 0 && p.take_back == 0);
    CHECK(read_text("{\"take_back\":1}", &p, &e) == 0 && p.take_back == 1);
}

static void what_is_wrong_is_named_and_changes_nothing(void)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        { "{\"half_lif\":\"3d\"}", "half_lif" },
        { "{\"half_life\":\"5s\"}", "half_life: 5s; it must lie between 1m and" },
        { "{\"half_life\":\"soon\"}", "half_life: 'soon' is not a duration" },
        { "{\"half_life_ms\":5}", "half_life_ms: " },
        { "{\"half_life\":\"3d\",\"half_life_ms\":5}", "half_life and half_life_ms are the same" },
        { "{\"take_back\":2}", "take_back: '2' is neither yes nor no" },
        { "{\"claims_max\":-1}", "claims_max: " },
        { "{\"claims_max\":\"2h\"}", "claims_max: " },
        { "{\"claims_max\":[1]}", "claims_max: " },
        { "{\"min_run\":null}", "min_run: " },
        { "7", "must be an object" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct policy p = { .claims_max = 99 };
        struct err e = { 0 };
        CHECK_AT(i, read_text(rows[i].text, &p, &e) < 0);
        if (!strstr(e.msg, rows[i].says))
            test_fail(__FILE__, __LINE__, "%s: '%s'", rows[i].text, e.msg);
        CHECK_AT(i, p.claims_max == 99);
    }
}

static void what_is_printed_can_be_read_again(void)
{
    const struct policy_key *k;
    struct policy p = policy_default(), back;
    struct err e = { 0 };
    AUTO(buf_free) struct buf b = BUF(8192);
    for (size_t i = 0; (k = policy_key(i)); i++) /* none of them the default */
        *policy_value(&p, k) = k->dflt == k->min ? k->max : k->min;
    numbers_print(&p, &b);
    AUTO(json_free_p) struct json_doc *d = yaml_read(buf_str(&b), &e);
    CHECK_STR(e.msg, "");
    CHECK(numbers_read(json_find(json_root(d), "policy"), &back, &e) == 0);
    CHECK_STR(e.msg, "");
    CHECK(memcmp(&p, &back, sizeof p) == 0);
}

static const struct test tests[] = {
    { "without a word they are the defaults", without_a_word_they_are_the_defaults },
    { "every number is set as people write it", every_number_is_set_as_people_write_it },
    { "what is wrong is named, and changes nothing", what_is_wrong_is_named_and_changes_nothing },
    { "what is printed can be read again", what_is_printed_can_be_read_again },
};
TEST_CASES(tests)
