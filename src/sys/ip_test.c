#include "sys/ip.h"

#include "tests/lib/test.h"

static void whose_an_address_is(void)
{
    static const struct {
        const char *text;
        enum ip_kind kind;
    } rows[] = {
        { "127.0.0.1", IP_HERE },
        { "127.255.1.2", IP_HERE },
        { "0.0.0.0", IP_HERE },
        { "0.1.2.3", IP_HERE },
        { "169.254.169.254", IP_HERE },
        { "224.0.0.1", IP_HERE },
        { "240.0.0.1", IP_HERE },
        { "255.255.255.255", IP_HERE },
        { "::1", IP_HERE },
        { "[::1]", IP_HERE },
        { "::", IP_HERE },
        { "::127.0.0.1", IP_HERE },
        { "::ffff:127.0.0.1", IP_HERE },
        { "::ffff:7f00:1", IP_HERE },
        { "64:ff9b::7f00:1", IP_HERE },
        { "64:ff9b::169.254.169.254", IP_HERE },
        { "2002:7f00:1::1", IP_HERE },
        { "fe80::1", IP_HERE },
        { "febf::1", IP_HERE },
        { "ff02::1", IP_HERE },
        { "fd00:ec2::254", IP_HERE },
        { "10.1.2.3", IP_PRIVATE },
        { "172.16.0.1", IP_PRIVATE },
        { "172.31.255.255", IP_PRIVATE },
        { "192.168.1.1", IP_PRIVATE },
        { "100.64.0.1", IP_PRIVATE },
        { "::ffff:10.0.0.1", IP_PRIVATE },
        { "fc00::1", IP_PRIVATE },
        { "fdff::1", IP_PRIVATE },
        { "2002:c0a8:101::", IP_PRIVATE },
        { "172.32.0.1", IP_PUBLIC },
        { "100.128.0.1", IP_PUBLIC },
        { "8.8.8.8", IP_PUBLIC },
        { "126.255.255.255", IP_PUBLIC },
        { "169.253.0.1", IP_PUBLIC },
        { "64:ff9b::808:808", IP_PUBLIC },
        { "2606:4700::1111", IP_PUBLIC },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint8_t ip[IP_BYTES];
        CHECK(ip_parse(str_of(rows[i].text), ip));
        if (ip_kind(ip) != rows[i].kind)
            CHECK_STR(rows[i].text, "of another kind");
    }
}

static void what_is_no_address_may_be_a_name(void)
{
    static const char *const rows[] = { "",      "lab.example", "1.2.3",      "1.2.3.4.5",
                                        "[",     "[]",          "2130706433", "0x7f.1",
                                        "::1::", "1.2.3.256",   "[::1",       "fe80::1%eth0" };
    uint8_t ip[IP_BYTES];
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        CHECK(!ip_parse(str_of(rows[i]), ip));
    CHECK(!ip_parse((struct str){ "1.2.3.4\0", 8 }, ip));
}

static const struct test tests[] = {
    { "whose an address is, however it is spelt", whose_an_address_is },
    { "what is no address may be a name", what_is_no_address_may_be_a_name },
};
TEST_CASES(tests)
