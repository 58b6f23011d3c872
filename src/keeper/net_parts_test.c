/* The pure parts of net: addresses, routes, tenants, name servers, rules, plugin texts. */
#include "keeper/net_dns.h"
#include "keeper/net_rules.h"
#include "keeper/net_slot.h"
#include "keeper/net_tenants.h"
#include "tests/lib/test.h"

static void ranges_are_read_strictly(void)
{
    static const char *const bad[] = { "",         "10.0.0.0", "10.0.0.0/33",
                                       "10.0.0/8", "x/8",      "10.0.0.1/8" };
    struct cidr c;
    struct err e;
    char text[IP4_TEXT];
    CHECK(cidr_parse(STR("10.203.0.0/16"), &c, &e) == 0 && c.bits == 16);
    CHECK_STR(ip4_format(c.base, text), "10.203.0.0");
    CHECK(cidr_parse(STR("0.0.0.0/0"), &c, &e) == 0 && c.base == 0 && c.bits == 0);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK_AT(i, cidr_parse(str_of(bad[i]), &c, &e) < 0 && e.hint[0]);
}

static void overlaps_are_seen_both_ways(void)
{
    struct cidr wide = { 0x0a000000, 8 }, narrow = { 0x0acb0100, 24 }, other = { 0x0acb0200, 24 };
    CHECK(cidr_overlap(wide, narrow) && cidr_overlap(narrow, wide));
    CHECK(!cidr_overlap(narrow, other) && cidr_overlap(narrow, narrow));
    CHECK(cidr_overlap((struct cidr){ 0, 0 }, other));
}

static void the_kernels_routes_are_read(void)
{
    struct route r[4];
    size_t n = routes_parse(
        STR("Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"
            "eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
            "eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"
            "broken line\n"),
        r, ARRAY_LEN(r));
    CHECK_INT(n, 2);
    CHECK_STR(r[0].dev, "eth0");
    CHECK(r[0].to.bits == 0 && r[1].to.bits == 24 && r[1].to.base == 0xc0000200);
}

static void tenants_keep_their_numbers(void)
{
    AUTO(net_tenants_clear) struct net_tenants t = { 0 };
    AUTO(net_tenants_clear) struct net_tenants again = { 0 };
    AUTO(buf_free) struct buf text = BUF(4096);
    struct err e;
    net_tenants_add(&t, STR("vision"), 0);
    net_tenants_add(&t, STR("sp\"eech"), 7);
    net_tenants_format(&t, &text);
    CHECK(net_tenants_parse(buf_str(&text), &again, &e) == 0 && again.n == 2);
    CHECK(net_tenants_find(&again, STR("sp\"eech"))->number == 7);
    CHECK_STR(net_tenants_number(&again, 0)->name, "vision");
    CHECK(!net_tenants_find(&again, STR("visio")) && !net_tenants_number(&again, 1));
}

static void damaged_lists_of_tenants_are_refused(void)
{
    static const char *const bad[] = {
        "",
        "[]",
        "{}",
        "{\"version\":2,\"tenants\":[]}",
        "{\"version\":1,\"tenants\":{}}",
        "{\"version\":1,\"tenants\":[1]}",
        "{\"version\":1,\"tenants\":[{\"name\":\"a\"}]}",
        "{\"version\":1,\"tenants\":[{\"name\":\"\",\"number\":1}]}",
        "{\"version\":1,\"tenants\":[{\"name\":\"a\",\"number\":1024}]}",
        "{\"version\":1,\"tenants\":[{\"name\":\"a\",\"number\":1},{\"name\":\"b\",\"number\":1}]}",
        "{\"version\":1,\"tenants\":[{\"name\":\"a\",\"number\":1},{\"name\":\"a\",\"number\":2}]}",
    };
    AUTO(net_tenants_clear) struct net_tenants t = { 0 };
    struct err e;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK_AT(i, net_tenants_parse(str_of(bad[i]), &t, &e) < 0 && t.n == 0);
}

static void name_servers_that_a_task_can_use(void)
{
    struct net_dns d;
    AUTO(buf_free) struct buf out = BUF(4096);
    net_dns_parse(STR("# comment\nnameserver 192.0.2.53\nnameserver 2001:db8::1\n"
                      "nameserver 127.0.0.53\nsearch a.example b.example\noptions edns0\n"),
                  &d);
    CHECK(d.n == 1 && !d.forward);
    net_dns_format(&d, "10.0.0.1", &out);
    CHECK_STR(out.p, "search a.example b.example\noptions edns0\nnameserver 192.0.2.53\n");
    net_dns_parse(STR("nameserver 127.0.0.53\n"), &d);
    CHECK(d.forward && d.loopback == 0x7f000035);
    buf_truncate(&out, 0);
    net_dns_format(&d, "10.0.0.1", &out);
    CHECK_STR(out.p, "nameserver 10.0.0.1\n");
    net_dns_parse(STR(""), &d);
    CHECK(d.forward && d.loopback == 0x7f000001);
}

static void rules_hold_only_what_was_checked(void)
{
    struct net_dns dns = { 0 };
    static const char *const good[] = { "tcp:80", "192.0.2.7:udp:53", NULL };
    static const char *const bad[] = { "tcp",    "tcp:",        "tcp:0",          "tcp:65536",
                                       "sctp:1", "x:tcp:1",     "1.2.3:tcp:80",   "tcp:80:81",
                                       "",       "tcp:80; bad", "1.2.3.4:tcp:1:2" };
    struct net_rules r = { .table = "t",
                           .prefix = "b",
                           .range = { 0x0a000000, 16 },
                           .tenants = 2,
                           .allow = good,
                           .dns = &dns };
    AUTO(buf_free) struct buf out = BUF(65536);
    struct err e;
    CHECK(net_rules_text(&r, &out, &e) == 0);
    CHECK(strstr(out.p, "    tcp dport 80 accept\n"));
    CHECK(strstr(out.p, "    ip daddr 192.0.2.7 udp dport 53 accept\n"));
    CHECK(strstr(out.p, "\"b1\" . \"b1\"") && !strstr(out.p, "\"b2\""));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        const char *const one[] = { bad[i], NULL };
        r.allow = one;
        buf_truncate(&out, 0);
        CHECK_AT(i, net_rules_text(&r, &out, &e) < 0 && e.code == ERR_INVALID);
    }
}

static void plugins_are_told_and_understood(void)
{
    struct net_site s = {
        .run_dir = "/run/x", .prefix = "nsb", .range = { 0x0acb0000, 16 }, .subnet_bits = 24
    };
    struct net_slot slot;
    AUTO(buf_free) struct buf conf = BUF(4096);
    char address[IP4_TEXT];
    struct err e;
    CHECK(net_slot_parse(&s, STR("nsb12.3"), &slot) && slot.number == 12);
    CHECK(!net_slot_parse(&s, STR("nsb256.0"), &slot) && !net_slot_parse(&s, STR("nsb1"), &slot));
    CHECK(!net_slot_parse(&s, STR("../nsb1.1"), &slot) && !net_slot_parse(&s, STR("x1.1"), &slot));
    net_slot_conf(&s, &slot, 1400, &conf);
    CHECK(strstr(conf.p, "\"subnet\":\"10.203.12.0/24\"") && strstr(conf.p, "\"mtu\":1400"));
    CHECK(net_slot_result(STR("{\"ips\":[{\"address\":\"10.203.12.9/24\"}]}"), address, &e) == 0);
    CHECK_STR(address, "10.203.12.9");
    CHECK(net_slot_result(STR("{\"ips\":[]}"), address, &e) < 0);
    CHECK(net_slot_result(STR("{\"ips\":[{\"address\":\"x/24\"}]}"), address, &e) < 0);
    CHECK(net_slot_result(STR(""), address, &e) < 0);
    CHECK_INT(net_site_slots(&s), 253);
    CHECK_INT(net_site_tenants(&s), 256);
}

static const struct test tests[] = {
    { "ranges are read strictly", ranges_are_read_strictly },
    { "overlaps are seen both ways", overlaps_are_seen_both_ways },
    { "the kernel's routes are read", the_kernels_routes_are_read },
    { "tenants keep their numbers", tenants_keep_their_numbers },
    { "damaged lists of tenants are refused", damaged_lists_of_tenants_are_refused },
    { "only name servers that a task can use are named", name_servers_that_a_task_can_use },
    { "rules hold only what was checked", rules_hold_only_what_was_checked },
    { "plugins are told what to do and understood", plugins_are_told_and_understood },
};
TEST_CASES(tests)
