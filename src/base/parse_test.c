#include "base/parse.h"

#include <float.h>
#include <locale.h>
#include <stdio.h>

#include "base/rng.h"
#include "tests/lib/test.h"

static void whole_numbers(void)
{
    struct err e;
    uint64_t u = 7;
    int64_t i = 7;
    CHECK(parse_u64(STR("0"), 10, &u, &e) == 0 && u == 0);
    CHECK(parse_u64(STR("18446744073709551615"), UINT64_MAX, &u, &e) == 0 && u == UINT64_MAX);
    CHECK(parse_u64(STR("007"), 10, &u, &e) == 0 && u == 7);
    static const char *const bad[] = { "",
                                       " 1",
                                       "1 ",
                                       "+1",
                                       "-1",
                                       "0x1",
                                       "1.0",
                                       "11",
                                       "1e1",
                                       "one",
                                       "18446744073709551616",
                                       "99999999999999999999999" };
    for (size_t k = 0; k < ARRAY_LEN(bad); k++)
        CHECK_AT(k, parse_u64(str_of(bad[k]), 10, &u, &e) < 0 && u == 7 && e.hint[0]);
    CHECK(parse_i64(STR("-9223372036854775808"), INT64_MIN, INT64_MAX, &i, &e) == 0);
    CHECK(i == INT64_MIN);
    CHECK(parse_i64(STR("9223372036854775807"), INT64_MIN, INT64_MAX, &i, &e) == 0);
    CHECK(i == INT64_MAX);
    CHECK(parse_i64(STR("9223372036854775808"), INT64_MIN, INT64_MAX, &i, &e) < 0);
    CHECK(parse_i64(STR("-6"), -5, 5, &i, &e) < 0 && parse_i64(STR("--5"), -5, 5, &i, &e) < 0);
    CHECK(parse_i64(STR("-"), -5, 5, &i, &e) < 0 && i == INT64_MAX);
    CHECK(parse_u64(STR("12x"), 10, &u, &e) < 0);
    CHECK_STR(e.msg, "'12x' is not a whole number from 0 to 10");
}

static void decimal_numbers(void)
{
    struct err e;
    double d = 7;
    static const struct {
        const char *text;
        double want;
    } good[] = {
        { "0", 0 },
        { "-0.5", -0.5 },
        { "1e6", 1e6 },
        { "1.25E-3", 1.25e-3 },
        { "007.5", 7.5 },
        { "2e+2", 200 },
        { "0.1", 0.1 },
        { "00", 0 },
        { "-01.50", -1.5 },
        { "1e-400", 0 },
        { "123456789012345678", 123456789012345678.0 },
    };
    for (size_t k = 0; k < ARRAY_LEN(good); k++)
        CHECK_AT(k,
                 parse_f64(str_of(good[k].text), -1e300, 1e300, &d, &e) == 0 && d == good[k].want);
    static const char *const bad[] = { "",      ".5",  "5.",    "+1",  "1e",      "1e+",
                                       "nan",   "inf", "1,5",   "0x1", " 1",      "1 ",
                                       "1e400", "-",   "1.2.3", "1_0", "infinity" };
    d = 7;
    for (size_t k = 0; k < ARRAY_LEN(bad); k++)
        CHECK_AT(k, parse_f64(str_of(bad[k]), -1e300, 1e300, &d, &e) < 0 && d == 7);
    CHECK(parse_f64(STR("2"), 0, 1, &d, &e) < 0);
    CHECK(parse_f64((struct str){ "1.55", 3 }, 0, 9, &d, &e) == 0 && d == 1.5);
}

static void every_double_comes_back(void)
{
    struct rng r = { 9 };
    struct err e;
    for (int i = 0; i < 20000; i++) {
        union {
            uint64_t u;
            double d;
        } x = { rng_u64(&r) };
        if (!__builtin_isfinite(x.d))
            continue;
        char text[40];
        double got = 0;
        int n = snprintf(text, sizeof text, "%.17g", x.d);
        CHECK_AT(i, parse_f64((struct str){ text, (size_t)n }, -DBL_MAX, DBL_MAX, &got, &e) == 0);
        CHECK_AT(i, got == x.d);
    }
}

static void the_locale_does_not_matter(void)
{
    struct err e;
    double d = 0;
    const char *set = setlocale(LC_ALL, "de_DE.UTF-8");
    int rc = parse_f64(STR("0.5"), 0, 1, &d, &e);
    setlocale(LC_ALL, "C");
    CHECK(rc == 0 && d == 0.5);
    if (!set)
        SKIP("the machine has no German locale");
}

static void yes_and_no(void)
{
    struct err e;
    bool b = false;
    CHECK(parse_bool(STR("yes"), &b, &e) == 0 && b);
    CHECK(parse_bool(STR("off"), &b, &e) == 0 && !b);
    CHECK(parse_bool(STR("1"), &b, &e) == 0 && b);
    CHECK(parse_bool(STR("Yes"), &b, &e) < 0 && parse_bool(STR(""), &b, &e) < 0 && b);
}

static void durations(void)
{
    static const struct {
        const char *text;
        int64_t want_ms;
    } good[] = {
        { "90", 90000 },
        { "500ms", 500 },
        { "30s", 30000 },
        { "5m", 300000 },
        { "8h", 28800000 },
        { "2d", 172800000 },
        { "1w", 604800000 },
        { "1h30m", 5400000 },
        { "1-12:00:00", 129600000 },
        { "12:30:00", 45000000 },
        { "12:30", 45000000 },
        { "1d2h3m4s5ms", 93784005 },
        { "0", 0 },
        { "100:00:01", 360001000 },
        { "1-12:30", 131400000 },
    };
    static const char *const bad[] = {
        "",
        "h",
        "1x",
        "-1h",
        "1.5h",
        "1h1h",
        "1m1h",
        "1 h",
        "1:60",
        "1::2",
        "1-24:00",
        "1-2",
        "1:2:3:4",
        ":30",
        "1h30",
        "1-",
        "99999999999999999999",
        "9999999999999w",
        "9223372036854776",
        "1-12:00:60",
        "5M",
    };
    struct err e;
    int64_t ms = 7;
    for (size_t k = 0; k < ARRAY_LEN(good); k++)
        CHECK_AT(k, parse_duration_ms(str_of(good[k].text), &ms, &e) == 0 && ms == good[k].want_ms);
    ms = 7;
    for (size_t k = 0; k < ARRAY_LEN(bad); k++)
        CHECK_AT(k, parse_duration_ms(str_of(bad[k]), &ms, &e) < 0 && ms == 7 && e.hint[0]);
}

static void sizes(void)
{
    static const struct {
        const char *text;
        uint64_t want;
    } good[] = {
        { "512", 512 },
        { "16Gi", UINT64_C(16) << 30 },
        { "16GiB", UINT64_C(16) << 30 },
        { "16G", UINT64_C(16000000000) },
        { "16GB", UINT64_C(16000000000) },
        { "1.5Ti", UINT64_C(3) << 39 },
        { "0.1K", 100 },
        { "0", 0 },
        { "16383Pi", UINT64_C(16383) << 50 },
        { "0.5Ki", 512 },
    };
    static const char *const bad[] = { "",     "Gi",      "16gi",  "1.5", "16 Gi",
                                       "-1G",  "16384Pi", "1..5G", "1.G", "16X",
                                       "16iB", "16Gib",   "B",     "1B2", "0.1234567890123G" };
    struct err e;
    uint64_t n = 7;
    for (size_t k = 0; k < ARRAY_LEN(good); k++)
        CHECK_AT(k, parse_size_bytes(str_of(good[k].text), &n, &e) == 0 && n == good[k].want);
    n = 7;
    for (size_t k = 0; k < ARRAY_LEN(bad); k++)
        CHECK_AT(k, parse_size_bytes(str_of(bad[k]), &n, &e) < 0 && n == 7);
}

static void thousandths(void)
{
    struct err e;
    uint64_t m = 7;
    CHECK(parse_milli(STR("4"), 4000, &m, &e) == 0 && m == 4000);
    CHECK(parse_milli(STR("0.5"), 4000, &m, &e) == 0 && m == 500);
    CHECK(parse_milli(STR("1.25"), 4000, &m, &e) == 0 && m == 1250);
    CHECK(parse_milli(STR("250m"), 4000, &m, &e) == 0 && m == 250);
    CHECK(parse_milli(STR("1.0000"), 4000, &m, &e) == 0 && m == 1000);
    static const char *const bad[] = { "4.001", "0.0005", "-1", "", "m", "1.5m", "4x", "4001m" };
    for (size_t k = 0; k < ARRAY_LEN(bad); k++)
        CHECK_AT(k, parse_milli(str_of(bad[k]), 4000, &m, &e) < 0 && m == 1000);
}

static void what_is_printed_reads_back(void)
{
    char text[32];
    struct err e;
    CHECK_STR(format_duration_ms(5400000, text), "1h30m");
    CHECK_STR(format_duration_ms(0, text), "0s");
    CHECK_STR(format_duration_ms(-1500, text), "-1s500ms");
    CHECK_STR(format_duration_ms(8 * 86400000LL, text), "8d");
    CHECK_STR(format_duration_ms(14 * 86400000LL, text), "2w");
    CHECK_STR(format_duration_ms(INT64_MIN, text), "-106751991167d7h12m55s808ms");
    CHECK_STR(format_size(UINT64_C(17179869184), text), "16Gi");
    CHECK_STR(format_size(0, text), "0");
    CHECK_STR(format_size(1500, text), "1500");
    CHECK_STR(format_size(UINT64_C(16000000000), text), "16G");
    CHECK_STR(format_size(UINT64_C(3) << 39, text), "1.5Ti");
    CHECK_STR(format_size(UINT64_MAX, text), "18446744073709551615");
    for (uint64_t seed = 1; seed <= 20000; seed++) {
        struct rng r = { seed };
        uint64_t v = rng_u64(&r) >> rng_below(&r, 64), size = 0;
        v = rng_below(&r, 2) ? v : v / 1000 * 1000;
        int64_t ms = -1;
        CHECK_AT(seed, parse_size_bytes(str_of(format_size(v, text)), &size, &e) == 0 && size == v);
        v >>= 1;
        CHECK_AT(seed,
                 parse_duration_ms(str_of(format_duration_ms((int64_t)v, text)), &ms, &e) == 0);
        CHECK_AT(seed, ms == (int64_t)v);
    }
}

static const struct test tests[] = {
    { "whole numbers are digits only, within their range", whole_numbers },
    { "decimal numbers are read strictly", decimal_numbers },
    { "every double printed with 17 digits comes back", every_double_comes_back },
    { "the locale does not change what 0.5 means", the_locale_does_not_matter },
    { "yes and no have eight spellings and no more", yes_and_no },
    { "durations are read in all their forms and refused in others", durations },
    { "sizes are exact, binary or decimal", sizes },
    { "thousandths are exact or refused", thousandths },
    { "what is printed is short and reads back", what_is_printed_reads_back },
};
TEST_CASES(tests)
