#include "cli/text.h"

#include <time.h>

#include "tests/lib/test.h"

static void times_have_two_units_at_most(void)
{
    static const struct {
        int64_t ms;
        const char *text;
    } cases[] = {
        { -5, "0s" },       { 0, "0s" },           { 999, "0s" },
        { 45000, "45s" },   { 60000, "1m" },       { 192000, "3m12s" },
        { 65000, "1m05s" }, { 7200000, "2h" },     { 7500000, "2h05m" },
        { 86400000, "1d" }, { 100800000, "1d4h" }, { INT64_C(1036800000), "12d" },
    };
    char out[24];
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        CHECK_STR(text_duration(cases[i].ms, out), cases[i].text);
}

static void amounts_are_short(void)
{
    char out[24];
    CHECK_STR(text_mib(512, out), "512M");
    CHECK_STR(text_mib(1536, out), "1.5G");
    CHECK_STR(text_mib(16384, out), "16G");
    CHECK_STR(text_mib(131000, out), "128G");
    CHECK_STR(text_milli(2000, out), "2");
    CHECK_STR(text_milli(500, out), "0.5");
    CHECK_STR(text_milli(250, out), "0.25");
}

static void a_point_in_time_is_local_and_may_be_unknown(void)
{
    char out[24];
    setenv("TZ", "UTC", 1);
    tzset();
    CHECK_STR(text_time(INT64_C(1772368200000), out), "2026-03-01 12:30");
    CHECK_STR(text_time_seconds(INT64_C(1772368200000), out), "2026-03-01T12:30:00");
    CHECK_STR(text_time(0, out), "-");
}

static void what_is_near_is_said_by_its_day(void)
{
    char out[24];
    int64_t now_ms = INT64_C(1772368200000), hour_ms = 3600000; /* a Sunday, 12:30 */
    setenv("TZ", "UTC", 1);
    tzset();
    CHECK_STR(text_soon(now_ms + hour_ms, now_ms, out), "13:30");
    CHECK_STR(text_soon(now_ms + 20 * hour_ms, now_ms, out), "Mon 08:30");
    CHECK_STR(text_soon(now_ms - 20 * hour_ms, now_ms, out), "Sat 16:30");
    CHECK_STR(text_soon(now_ms + 24 * 9 * hour_ms, now_ms, out), "2026-03-10 12:30");
    CHECK_STR(text_soon(0, now_ms, out), "never");
}

static void width_counts_columns_not_bytes(void)
{
    CHECK_INT(text_width(str_of("abc")), 3);
    CHECK_INT(text_width(str_of("Zürich")), 6);
    CHECK_INT(text_width(str_of("日本")), 4);
    CHECK_INT(text_width(str_of("e\xcc\x81")), 1); /* e and a combining accent */
    CHECK_INT(text_width(str_of("\xff\xfe")), 2);
}

static void what_does_not_fit_ends_with_an_ellipsis(void)
{
    static const struct {
        const char *text, *cut;
        unsigned columns;
    } cases[] = {
        { "train", "train", 5 }, { "training", "trai…", 5 }, { "Zürich", "Zür…", 4 },
        { "日本語", "日…", 4 },  { "abc", "…", 1 },          { "abc", "", 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO(buf_free) struct buf b = BUF(100);
        CHECK(text_add_fit(&b, str_of(cases[i].text), cases[i].columns) <= cases[i].columns);
        CHECK_STR(buf_str(&b).p, cases[i].cut);
    }
}

static void no_control_character_reaches_a_terminal(void)
{
    AUTO(buf_free) struct buf b = BUF(100);
    text_add_clean(&b, str_of("a\x1b[31mb\nc\x7f\xc2\x9b"
                              "d\xe2\x80\xae"
                              "e"));
    CHECK_STR(b.p, "a?[31mb?c??d?e");
}

static void a_bar_is_as_wide_as_asked(void)
{
    AUTO(buf_free) struct buf b = BUF(100);
    text_add_bar(&b, 1, 4, 4);
    CHECK_STR(b.p, "█░░░");
    buf_truncate(&b, 0);
    text_add_bar(&b, 9, 4, 2);
    text_add_bar(&b, 0, 0, 2);
    CHECK_STR(b.p, "██░░");
}

static const struct test tests[] = {
    { "what is near is said by its day", what_is_near_is_said_by_its_day },
    { "times have two units at most", times_have_two_units_at_most },
    { "amounts are short", amounts_are_short },
    { "a point in time is local and may be unknown", a_point_in_time_is_local_and_may_be_unknown },
    { "width counts columns, not bytes", width_counts_columns_not_bytes },
    { "what does not fit ends with an ellipsis", what_does_not_fit_ends_with_an_ellipsis },
    { "no control character reaches a terminal", no_control_character_reaches_a_terminal },
    { "a bar is as wide as asked", a_bar_is_as_wide_as_asked },
};
TEST_CASES(tests)
