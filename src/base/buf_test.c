#include "base/buf.h"

#include "tests/lib/test.h"

static void adds_all_kinds(void)
{
    AUTO(buf_free) struct buf b = BUF(1000);
    CHECK(str_is(buf_str(&b), ""));
    CHECK_STR(buf_str(&b).p, "");
    buf_add(&b, STR("one "));
    buf_addz(&b, "two ");
    buf_addc(&b, '3');
    buf_printf(&b, " %s%d", "four", 5);
    CHECK_STR(b.p, "one two 3 four5");
    for (int i = 0; i < 50; i++)
        buf_printf(&b, "%010d", i);
    CHECK(b.n == 15 + 500 && strlen(b.p) == b.n && !b.full);
}

static void stops_at_its_limit(void)
{
    struct err e;
    for (int way = 0; way < 2; way++) {
        AUTO(buf_free) struct buf b = BUF(10);
        buf_addz(&b, "12345678");
        CHECK(buf_check(&b, &e) == 0);
        if (way)
            buf_printf(&b, "%s", "abc");
        else
            buf_addz(&b, "abc");
        CHECK_STR(b.p, "12345678");
        CHECK(b.full && buf_check(&b, &e) < 0 && e.code == ERR_TOO_LARGE);
        buf_addc(&b, '9'); /* would fit, but would leave a hole */
        CHECK_STR(b.p, "12345678");
    }
}

static void exactly_the_limit_fits(void)
{
    AUTO(buf_free) struct buf b = BUF(4), none = BUF(0);
    buf_printf(&b, "%d", 1234);
    CHECK(!b.full && b.n == 4);
    buf_addz(&none, "");
    CHECK(!none.full);
    buf_addc(&none, 'x');
    CHECK(none.full && none.n == 0);
}

static void truncating_makes_room(void)
{
    AUTO(buf_free) struct buf b = BUF(4);
    buf_addz(&b, "abcd");
    buf_addc(&b, 'e');
    buf_truncate(&b, 9);
    CHECK(b.full && b.n == 4);
    buf_truncate(&b, 2);
    buf_addz(&b, "xy");
    CHECK(!b.full);
    CHECK_STR(b.p, "abxy");
}

static const struct test tests[] = {
    { "everything added stands in order and ends with NUL", adds_all_kinds },
    { "past its limit it keeps what it had and refuses the rest", stops_at_its_limit },
    { "exactly the limit fits", exactly_the_limit_fits },
    { "truncating makes a full one usable again", truncating_makes_room },
};
TEST_CASES(tests)
