#include "engine/kube/quantity.h"

#include "tests/lib/quoted.h"

static void every_notation_becomes_thousandths(void)
{
    static const struct {
        const char *text;
        int64_t milli;
    } cases[] = {
        { "0", 0 },
        { "1", 1000 },
        { "+1", 1000 },
        { "-1", -1000 },
        { "100m", 100 },
        { "1500m", 1500 },
        { "1.5", 1500 },
        { ".5", 500 },
        { "5.", 5000 },
        { "0.25", 250 },
        { "1e3", 1000000 },
        { "1E3", 1000000 },
        { "1.5e3", 1500000 },
        { "12e-1", 1200 },
        { "1e+2", 100000 },
        { "1k", 1000000 },
        { "1M", 1000000000 },
        { "2G", 2000000000000 },
        { "1T", 1000000000000000 },
        { "1P", 1000000000000000000 },
        { "128974848", 128974848000 },
        { "1Ki", 1024000 },
        { "2Gi", INT64_C(2147483648000) },
        { "1.5Gi", INT64_C(1610612736000) },
        { "1Ti", INT64_C(1099511627776000) },
        { "0.1Ki", 102400 },
        { "00012", 12000 },
        { "0.0000000000000000000000000", 0 },
        { "9223372036854775.807", INT64_MAX },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int64_t milli = -1;
        struct err e;
        CHECK_INT(quantity_parse(str_of(cases[i].text), &milli, &e), 0);
        CHECK_INT(milli, cases[i].milli);
    }
}

static void what_is_finer_than_a_thousandth_is_rounded_up(void)
{
    static const struct {
        const char *text;
        int64_t milli;
    } cases[] = {
        { "1n", 1 },
        { "1u", 1 },
        { "1000u", 1 },
        { "1001u", 2 },
        { "0.1m", 1 },
        { "1.0001", 1001 },
        { "1e-9", 1 },
        { "1e-2000", 1 },
        { "0e-2000", 0 },
        { "-1n", -1 },
        { "0.00000000000000000000000000000000000000001", 1 },
        { "1.00000000000000000000000000000000000000001", 1001 },
        { "100000000000000.0000000000000000000000000001", 100000000000000001 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int64_t milli = -1;
        struct err e;
        CHECK_INT(quantity_parse(str_of(cases[i].text), &milli, &e), 0);
        CHECK_INT(milli, cases[i].milli);
    }
}

static void what_is_too_large_becomes_the_largest(void)
{
    static const char *const cases[] = { "9223372036854776",
                                         "1E",
                                         "16Ei",
                                         "99999999999999999999Ei",
                                         "1e100",
                                         "1e999999999999999999999",
                                         "123456789012345678901234567890123456789012345678901234" };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int64_t milli = -1;
        struct err e;
        CHECK_INT(quantity_parse(str_of(cases[i]), &milli, &e), 0);
        CHECK_INT(milli, INT64_MAX);
    }
    CHECK_INT(quantity_add(INT64_MAX, 1), INT64_MAX);
    CHECK_INT(quantity_add(INT64_MIN, -1), INT64_MIN);
    CHECK_INT(quantity_add(1500, -500), 1000);
}

static void what_is_no_quantity_is_refused(void)
{
    static const char *const cases[] = { "",    "m",   "-",   ".",     "1 ",  " 1",   "1.2.3",
                                         "1ki", "1gi", "1GB", "1e",    "1e+", "1e1e", "1mi",
                                         "0x1", "inf", "NaN", "1e1.5", "--1", "1-",   "1Gi2" };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int64_t milli = 7;
        struct err e = { 0 };
        CHECK_INT(quantity_parse(str_of(cases[i]), &milli, &e), -1);
        CHECK_INT(milli, 7);
        CHECK(e.code == ERR_INVALID && e.hint[0]);
    }
}

static void numbers_in_json_are_quantities_too(void)
{
    AUTO(json_free_p) struct json_doc *d = quoted_json("[4, 0.5, '250m', 1e3, true]");
    const struct json *list = json_root(d);
    int64_t want[] = { 4000, 500, 250, 1000000 };
    int64_t milli = -1;
    struct err e;
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        CHECK_INT(quantity_read(json_at(list, i), &milli, &e), 0);
        CHECK_INT(milli, want[i]);
    }
    CHECK_INT(quantity_read(json_at(list, 4), &milli, &e), -1);
}

static void asking_rounds_up_and_having_rounds_down(void)
{
    CHECK_INT(quantity_units(1), 1);
    CHECK_INT(quantity_units(2000), 2);
    CHECK_INT(quantity_units(2001), 3);
    CHECK_INT(quantity_units(-5), 0);
    CHECK_INT(quantity_mib_asked(1), 1);
    CHECK_INT(quantity_mib_there(1048575999), 0);
    CHECK_INT(quantity_mib_asked(1048576000), 1);
    CHECK_INT(quantity_mib_there(1048576000), 1);
    CHECK_INT(quantity_mib_asked(1048576001), 2);
    CHECK_INT(quantity_mib_asked(INT64_MAX), INT64_MAX / 1048576000 + 1);
    CHECK_INT(quantity_mib_there(-1), 0);
}

static const struct test tests[] = {
    { "every notation becomes thousandths", every_notation_becomes_thousandths },
    { "what is finer than a thousandth is rounded up",
      what_is_finer_than_a_thousandth_is_rounded_up },
    { "what is too large becomes the largest", what_is_too_large_becomes_the_largest },
    { "what is no quantity is refused", what_is_no_quantity_is_refused },
    { "numbers in JSON are quantities too", numbers_in_json_are_quantities_too },
    { "asking rounds up and having rounds down", asking_rounds_up_and_having_rounds_down },
};
TEST_CASES(tests)
