#include "http/forwarded.h"

#include "base/buf.h"
#include "tests/lib/test.h"

static struct net_addr addr(const char *text)
{
    struct net_addr a = { { 0 } };
    if (!net_addr_parse(str_of(text), &a))
        test_fail(__FILE__, __LINE__, "%s", text);
    return a;
}

static struct net_list nets(const char *text)
{
    struct net_list l;
    struct err e;
    if (net_list_parse(str_of(text), &l, &e) < 0)
        test_fail(__FILE__, __LINE__, "%s: %s", text, e.msg);
    return l;
}

static void addresses_are_read_strictly_and_written_back(void)
{
    static const char *const bad[] = { "",         "1.2.3",     "1.2.3.4:80", "[::1]",
                                       "::1%eth0", "unknown",   "1.2.3.4 ",   "01.2.3.4",
                                       "::g",      "1.2.3.256", "0x7f.0.0.1" };
    char text[NET_TEXT_BYTES];
    struct net_addr a;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (net_addr_parse(str_of(bad[i]), &a))
            test_fail(__FILE__, __LINE__, "taken: %s", bad[i]);
    CHECK(!net_addr_parse(STR("1.2.3.4\0"), &a));
    a = addr("192.0.2.7");
    CHECK_STR(net_addr_text(&a, text), "192.0.2.7");
    a = addr("::ffff:192.0.2.7"); /* the same one */
    CHECK_STR(net_addr_text(&a, text), "192.0.2.7");
    a = addr("2001:DB8::1");
    CHECK_STR(net_addr_text(&a, text), "2001:db8::1");
}

static void limits_hold_for_a_v4_address_and_for_a_v6_network(void)
{
    struct net_addr a = addr("192.0.2.7"), b = addr("192.0.2.8");
    CHECK(net_addr_key(&a) != net_addr_key(&b));
    a = addr("2001:db8:1:2::1");
    b = addr("2001:db8:1:2:ffff::2");
    CHECK(net_addr_key(&a) == net_addr_key(&b));
    b = addr("2001:db8:1:3::1");
    CHECK(net_addr_key(&a) != net_addr_key(&b));
}

static void networks_have_what_is_in_them(void)
{
    static const struct {
        const char *list, *address;
        bool in;
    } rows[] = {
        { "127.0.0.1", "127.0.0.1", true },
        { "127.0.0.1", "127.0.0.2", false },
        { "127.0.0.1", "::1", false },
        { "10.0.0.0/8, 127.0.0.1", "10.255.0.1", true },
        { "10.0.0.0/8", "11.0.0.0", false },
        { "192.0.2.128/25", "192.0.2.127", false },
        { "192.0.2.128/25", "192.0.2.200", true },
        { "192.0.2.8/31 ::1", "192.0.2.9", true },
        { "192.0.2.8/31 ::1", "192.0.2.10", false },
        { "fd00::/8", "fdff::1", true },
        { "fd00::/8", "fe00::1", false },
        { "2001:db8::/33", "2001:db8:7fff::1", true },
        { "2001:db8::/33", "2001:db8:8000::1", false },
        { "::/1", "1.2.3.4", true },
        { "", "127.0.0.1", false },
        { " , ,", "127.0.0.1", false },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct net_list l = nets(rows[i].list);
        struct net_addr a = addr(rows[i].address);
        if (net_list_has(&l, &a) != rows[i].in)
            test_fail(__FILE__, __LINE__, "%s in %s", rows[i].address, rows[i].list);
    }
}

static void wrong_networks_are_refused(void)
{
    static const char *const bad[] = { "localhost",   "10.0.0.0/33", "10.0.0.0/0",  "10.0.0.1/8",
                                       "fd00::1/64",  "::/129",      "10.0.0.0/",   "10.0.0.0/x",
                                       "10.0.0.0/-1", "/8",          "10.0.0.0/8/8" };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct net_list l = { .n = 7 };
        struct err e = { 0 };
        if (net_list_parse(str_of(bad[i]), &l, &e) == 0)
            test_fail(__FILE__, __LINE__, "taken: %s", bad[i]);
        CHECK(l.n == 7 && e.code == ERR_INVALID && e.hint[0]);
    }
    AUTO(buf_free) struct buf many = BUF(4096);
    struct net_list l;
    struct err e;
    for (int i = 0; i < NETS_MAX; i++)
        buf_printf(&many, "10.0.0.%d,", i);
    CHECK(net_list_parse(buf_str(&many), &l, &e) == 0 && l.n == NETS_MAX);
    buf_addz(&many, "10.0.1.0");
    CHECK(net_list_parse(buf_str(&many), &l, &e) < 0);
}

static void the_last_who_is_no_trusted_proxy_is_calling(void)
{
    static const struct {
        const char *header, *who; /* NULL: it cannot be read */
    } rows[] = {
        { "203.0.113.7", "203.0.113.7" },
        { " 203.0.113.7\t", "203.0.113.7" },
        { "203.0.113.7, 10.0.0.2", "203.0.113.7" },
        { "203.0.113.7,10.0.0.2,10.0.0.3", "203.0.113.7" },
        { "198.51.100.1, 203.0.113.7, 10.0.0.2", "203.0.113.7" },
        { "10.0.0.9, 203.0.113.7", "203.0.113.7" },
        { "nonsense, 203.0.113.7", "203.0.113.7" }, /* said by whoever is calling */
        { ",,203.0.113.7", "203.0.113.7" },
        { "2001:db8::1, 10.0.0.2", "2001:db8::1" },
        { "10.0.0.9, 10.0.0.2", "10.0.0.9" }, /* one of the machines there */
        { "", NULL },
        { ",", NULL },
        { "203.0.113.7,", NULL },
        { "203.0.113.7, nonsense", NULL },
        { "203.0.113.7, nonsense, 10.0.0.2", NULL },
        { "203.0.113.7:4711", NULL },
        { "unknown", NULL },
        { "203.0.113.7 10.0.0.2", NULL },
        { "for=203.0.113.7", NULL },
    };
    struct net_list trusted = nets("10.0.0.0/8");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[NET_TEXT_BYTES];
        struct net_addr a = { { 77 } };
        bool got = forwarded_for(&trusted, str_of(rows[i].header), &a);
        if (got != (rows[i].who != NULL))
            test_fail(__FILE__, __LINE__, "%s", rows[i].header);
        if (got)
            CHECK_STR(net_addr_text(&a, text), rows[i].who);
        else
            CHECK(a.b[0] == 77);
    }
    AUTO(buf_free) struct buf big = BUF(8192);
    struct net_addr a;
    while (big.n <= FORWARDED_MAX)
        buf_addz(&big, "10.0.0.1,");
    buf_addz(&big, "203.0.113.7");
    CHECK(!forwarded_for(&trusted, buf_str(&big), &a));
}

static const struct test tests[] = {
    { "addresses are read strictly and written back",
      addresses_are_read_strictly_and_written_back },
    { "limits hold for a v4 address and for a v6 network",
      limits_hold_for_a_v4_address_and_for_a_v6_network },
    { "networks have what is in them", networks_have_what_is_in_them },
    { "wrong networks are refused", wrong_networks_are_refused },
    { "the last who is no trusted proxy is calling", the_last_who_is_no_trusted_proxy_is_calling },
};
TEST_CASES(tests)
