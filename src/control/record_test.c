#include "control/record.h"

#include "tests/lib/test.h"

#define SPEC "{\"name\":\"n\",\"command\":[\"x\",\"y\"],\"array\":\"1-3\"}"

static void a_record_reads_back(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    AUTO(buf_free) struct buf text = BUF(1 << 16);
    struct job_record r = { .tenant = STR("vision"),
                            .user = STR("ana"),
                            .uid = 1000,
                            .account = 200001,
                            .state = JOB_FROZEN,
                            .awake = true,
                            .run = 3,
                            .array = 17,
                            .array_index = 2,
                            .submitted_ms = 1700000000000,
                            .ran_ms = 5000,
                            .fails = 1,
                            .message = STR("taken \"back\""),
                            .after = { { { 4 }, 3, AFTER_OK }, { { 9 }, 1, AFTER_BAD } },
                            .afters = 2 };
    struct job_record back;
    struct spec s;
    struct err e = { 0 };
    record_write(&r, STR(SPEC), &text);
    CHECK_INT(record_read(buf_str(&text), &a, &back, &s, &e), 0);
    CHECK(str_is(back.tenant, "vision") && str_is(back.user, "ana") && back.uid == 1000);
    CHECK_INT(back.account, 200001);
    CHECK(back.state == JOB_FROZEN && back.awake && back.run == 3 && back.fails == 1);
    CHECK(back.array == 17 && back.array_index == 2 && back.ran_ms == 5000);
    CHECK(back.submitted_ms == 1700000000000 && str_is(back.message, "taken \"back\""));
    CHECK(back.afters == 2 && back.after[0].first.v == 4 && back.after[0].n == 3);
    CHECK(back.after[1].first.v == 9 && back.after[1].when == AFTER_BAD);
    CHECK(str_is(s.name, "n") && s.n_args == 2 && s.is_array && s.array_to == 3);
}

static void what_is_none_is_refused(void)
{
    static const struct {
        const char *text, *why;
    } bad[] = {
        { "", "" },
        { "[]", "no object" },
        { "{}", "'spec'" },
        { "{\"spec\":{\"command\":[\"x\"]}}", "'state'" },
        { "{\"spec\":{\"command\":[\"x\"]},\"state\":\"running\"}", "'running' is none" },
        { "{\"spec\":{\"command\":[\"x\"]},\"state\":\"held\",\"tenant\":\"t\",\"user\":\"u\","
          "\"uid\":1,\"run\":0,\"submitted_ms\":-1}",
          "'submitted_ms'" },
        { "{\"spec\":{\"command\":[\"x\"]},\"state\":\"held\",\"tenant\":\"t\",\"user\":\"u\","
          "\"uid\":1,\"run\":0,\"submitted_ms\":1,\"after\":[1]}",
          "" },
        { "{\"spec\":{\"odd\":1},\"state\":\"held\",\"tenant\":\"t\",\"user\":\"u\","
          "\"uid\":1,\"run\":0,\"submitted_ms\":1}",
          "odd" },
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        AUTO(arena_free) struct arena a = { 0 };
        struct job_record r;
        struct spec s;
        struct err e = { 0 };
        CHECK_AT(i, record_read(str_of(bad[i].text), &a, &r, &s, &e) < 0);
        CHECK_AT(i, e.msg[0] && strstr(e.msg, bad[i].why));
    }
}

static void numbers_read_back(void)
{
    AUTO(buf_free) struct buf text = BUF(256);
    uint64_t n = 0;
    struct err e;
    record_write_numbers(350, &text);
    CHECK(record_read_numbers(buf_str(&text), &n, &e) == 0 && n == 350);
    CHECK(record_read_numbers(STR("{\"numbers\":-1}"), &n, &e) < 0);
    CHECK(record_read_numbers(STR("{}"), &n, &e) < 0 && n == 350);
}

static const struct test tests[] = {
    { "a record reads back", a_record_reads_back },
    { "what is none is refused", what_is_none_is_refused },
    { "numbers read back", numbers_read_back },
};
TEST_CASES(tests)
