#include <stdio.h>

#include "base/calendar.h"
#include "tests/lib/test.h"

static void texts_are_read_and_written(void)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        { "", "zone=UTC0" },
        { " ; ; ", "zone=UTC0" },
        { "zone=CET-1CEST,M3.5.0,M10.5.0/3; Mon-Fri 20:00-08:00; Sat,Sun 00:00-24:00; "
          "closed 2026-12-24..2026-12-26; open 2026-12-31 00:00..2026-12-31 24:00",
          "zone=CET-1CEST,M3.5.0,M10.5.0/3; Mon-Fri 20:00-08:00; Sat-Sun 00:00-24:00; "
          "closed 2026-12-24..2026-12-26; open 2026-12-31" },
        { "\n zone= <+0330>-3:30 ;\n Sun-Tue 20:00-00:00 ;\n",
          "zone=<+0330>-3:30; Mon-Tue,Sun 20:00-24:00" },
        { "Mon-Sun 00:00-12:00", "zone=UTC0; Mon-Sun 00:00-12:00" },
        { "Mon,Wed,Fri,Mon 23:59-00:01", "zone=UTC0; Mon,Wed,Fri 23:59-00:01" },
        { "closed 2026-11-21 18:00-24:00", "zone=UTC0; closed 2026-11-21 18:00-24:00" },
        { "closed 2026-11-21 18:00 .. 2026-11-22",
          "zone=UTC0; closed 2026-11-21 18:00..2026-11-22 24:00" },
        { "closed 2026-11-21..2026-11-22 00:00", "zone=UTC0; closed 2026-11-21" },
        { "closed 2026-11-21 24:00..2026-11-22", "zone=UTC0; closed 2026-11-22" },
        { "open 1970-01-01..2200-12-31", "zone=UTC0; open 1970-01-01..2200-12-31" },
        { "open 2024-02-29", "zone=UTC0; open 2024-02-29" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(buf_free) struct buf out = BUF(CALENDAR_TEXT_MAX);
        struct calendar c, again;
        struct err e = { 0 };
        if (calendar_parse(str_of(rows[i].text), NULL, NULL, &c, &e) < 0)
            test_fail(__FILE__, __LINE__, "%s", e.msg);
        calendar_format(&c, &out);
        CHECK_STR(out.p, rows[i].want);
        CHECK(calendar_parse(buf_str(&out), NULL, NULL, &again, &e) == 0);
        CHECK(calendar_equal(&c, &again));
    }
}

static void an_error_names_the_part_and_the_way_out(void)
{
    static const struct {
        const char *text, *says, *hints;
    } rows[] = {
        { "Mon 20:00-08:00; Fry 20:00-08:00", "part 2 'Fry 20:00-08:00': 'Fry' is neither",
          "Mon Tue" },
        { "mon 20:00-08:00", "'mon' is neither", "Mon" },
        { "Mon- 20:00-08:00", "'' is neither", "Mon" },
        { "Mon, Tue 20:00-08:00", "'' is neither", "Mon" },
        { "Mon", "'' are not hours", "00:00-24:00" },
        { "Mon all day", "'all day' are not hours", "00:00-24:00" },
        { "Mon 8:00-12:00", "'8:00' is not a time", "two digits" },
        { "Mon 08:00-24:01", "'24:01' is not a time", "24:00" },
        { "Mon 08:60-09:00", "'08:60' is not a time", "24:00" },
        { "Mon 08:00-08:00", "no stretch", "00:00-24:00" },
        { "Mon 24:00-08:00", "no stretch", "before 24:00" },
        { "Mon 08:00-09:00-10:00", "'09:00-10:00' is not a time", "24:00" },
        { "closed", "'closed' is neither", "Mon" },
        { "closed 2026-02-29", "'2026-02-29' is not a date", "2026-12-24" },
        { "closed 2026-13-01", "not a date", "2026-12-24" },
        { "closed 2026-00-01", "not a date", "2026-12-24" },
        { "closed 1969-12-31", "from 1970 to 2200", "2026-12-24" },
        { "closed 2201-01-01", "from 1970 to 2200", "2026-12-24" },
        { "closed 2026-1-1", "not a date", "2026-12-24" },
        { "closed 24.12.2026", "not a date", "2026-12-24" },
        { "closed 2026-12-26..2026-12-24", "ends before it begins", "both dates" },
        { "closed 2026-12-26 12:00..2026-12-26 12:00", "ends before it begins", "both dates" },
        { "closed 2026-12-26 18:00-02:00", "ends before it begins", "both dates" },
        { "closed 2026-12-26..", "'' is not a date", "2026-12-24" },
        { "closed 2026-12-24..2026-12-25..2026-12-26", "not a date", "2026-12-24" },
        { "closed 2026-12-24..2026-12-26 x", "'x' is not a time", "24:00" },
        { "Mon 20:00-08:00; zone=UTC0", "part 2 'zone=UTC0': the zone comes first", "begin" },
        { "zone=UTC0; zone=UTC0", "the zone comes first, and once", "begin" },
        { "zone=", "name of a zone", "zoneinfo" },
        { "zone=Europe/Berlin", "'Europe/Berlin' is the name of a zone", "zoneinfo/Europe/Berlin" },
        { "zone=Etc/GMT+1", "is the name of a zone", "zoneinfo" },
        { "zone=Cuba", "is the name of a zone", "zoneinfo" },
        { "zone=CET-1CEST", "part 1 'zone=CET-1CEST': 'CET-1CEST' is not a time zone's rule",
          "write" },
        { "zone=UTC0 Mon 20:00-08:00", "not a time zone's rule", "write" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct calendar c = calendar_always(), kept = c;
        struct err e = { 0 };
        if (calendar_parse(str_of(rows[i].text), NULL, NULL, &c, &e) == 0 ||
            !strstr(e.msg, rows[i].says) || !strstr(e.hint, rows[i].hints))
            test_fail(__FILE__, __LINE__, "'%s': %s (%s)", rows[i].text, e.msg, e.hint);
        CHECK(e.code == ERR_INVALID && calendar_equal(&c, &kept));
    }
}

static int parse(const struct buf *text, struct calendar *c, struct err *e)
{
    return calendar_parse(buf_str(text), NULL, NULL, c, e);
}

static void the_largest_calendar_can_be_written_and_read(void)
{
    AUTO(buf_free) struct buf text = BUF(2 * CALENDAR_TEXT_MAX);
    AUTO(buf_free) struct buf out = BUF(CALENDAR_TEXT_MAX);
    struct calendar c, again;
    struct err e = { 0 };
    buf_addz(&text, "zone=<ABCDEFGHIJKLM+1>24:59:59<ABCDEFGHIJKLM-1>-24:59:59,"
                    "M10.5.0/-167:59:59,M12.5.0/-167:59:59");
    for (unsigned i = 0; i < CALENDAR_SPANS_MAX; i++)
        buf_printf(&text, ";Mon-Tue,Thu-Fri,Sun 20:%02u-08:00", i);
    for (unsigned i = 0; i < CALENDAR_EXCEPTIONS_MAX; i++)
        buf_printf(&text, ";closed 2026-11-21 18:00..%04u-11-22 18:00", 2026 + i);
    CHECK(parse(&text, &c, &e) == 0);
    CHECK(c.spans == CALENDAR_SPANS_MAX && c.exceptions == CALENDAR_EXCEPTIONS_MAX);
    calendar_format(&c, &out);
    CHECK(!out.full && parse(&out, &again, &e) == 0 && calendar_equal(&c, &again));
}

static void a_calendar_is_bounded(void)
{
    static const struct {
        const char *part;
        unsigned n;
        const char *says;
    } rows[] = {
        { "Mon 20:00-21:00;", CALENDAR_SPANS_MAX, "more than 32 spans" },
        { "open 2026-01-01;", CALENDAR_EXCEPTIONS_MAX, "more than 64 exceptions" },
        { "               ;", CALENDAR_TEXT_MAX / 16, "4112 bytes, more than 4096" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(buf_free) struct buf text = BUF(2 * CALENDAR_TEXT_MAX);
        struct calendar c;
        struct err e = { 0 };
        for (unsigned k = 0; k < rows[i].n; k++)
            buf_addz(&text, rows[i].part);
        CHECK(parse(&text, &c, &e) == 0);
        buf_addz(&text, rows[i].part);
        CHECK(parse(&text, &c, &e) < 0 && e.code == ERR_TOO_LARGE && e.hint[0]);
        CHECK(strstr(e.msg, rows[i].says) != NULL);
    }
}

static int find_zone(void *ctx, struct str name, struct tz *out, struct err *e)
{
    (*(int *)ctx)++;
    if (!str_is(name, "Asia/Tehran"))
        return err_set(e, ERR_NOT_FOUND, "no such place");
    return tz_parse(STR("<+0330>-3:30"), out, e);
}

static void a_name_is_looked_up_where_that_is_possible(void)
{
    AUTO(buf_free) struct buf out = BUF(CALENDAR_TEXT_MAX);
    struct calendar c;
    struct err e = { 0 };
    int asked = 0;
    CHECK(calendar_parse(STR("zone=Asia/Tehran; Mon 08:00-09:00"), find_zone, &asked, &c, &e) == 0);
    calendar_format(&c, &out);
    CHECK_STR(out.p, "zone=<+0330>-3:30; Mon 08:00-09:00");
    CHECK(calendar_parse(STR("zone=Here"), find_zone, &asked, &c, &e) < 0);
    CHECK(e.code == ERR_NOT_FOUND && strstr(e.msg, "part 1 'zone=Here': no such place"));
    CHECK_INT(asked, 2);
    CHECK(calendar_parse(STR("zone=UTC0"), find_zone, &asked, &c, &e) == 0);
    CHECK_INT(asked, 2); /* a rule needs nobody */
}

static const struct test tests[] = {
    { "texts are read, and written in one form", texts_are_read_and_written },
    { "an error names the part and the way out", an_error_names_the_part_and_the_way_out },
    { "the largest calendar can be written and read again",
      the_largest_calendar_can_be_written_and_read },
    { "spans, exceptions and bytes are bounded", a_calendar_is_bounded },
    { "a zone's name is looked up where that is possible",
      a_name_is_looked_up_where_that_is_possible },
};
TEST_CASES(tests)
