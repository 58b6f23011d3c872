/* A list of tenants that parses, written and read again, is the same; no number and no name is there
 * twice. */
#include "keeper/net_tenants.h"
#include "tests/fuzz/target.h"

static void need(bool ok)
{
    if (!ok)
        abort();
}

FUZZ_TARGET(data, size)
{
    AUTO(net_tenants_clear) struct net_tenants t = { 0 };
    AUTO(net_tenants_clear) struct net_tenants again = { 0 };
    AUTO(buf_free) struct buf text = BUF(4u << 20);
    struct err e = { 0 };
    if (net_tenants_parse((struct str){ size ? (const char *)data : "", size }, &t, &e) < 0) {
        need(e.msg[0] && t.n == 0);
        return 0;
    }
    for (size_t i = 0; i < t.n; i++) {
        need(t.row[i].number < NET_TENANTS_MAX);
        need(net_tenants_find(&t, str_of(t.row[i].name)) == &t.row[i]);
        need(net_tenants_number(&t, t.row[i].number) == &t.row[i]);
    }
    net_tenants_format(&t, &text);
    need(net_tenants_parse(buf_str(&text), &again, &e) == 0 && again.n == t.n);
    for (size_t i = 0; i < t.n; i++)
        need(strcmp(t.row[i].name, again.row[i].name) == 0);
    return 0;
}
