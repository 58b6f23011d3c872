/* X-Forwarded-For and the list of trusted proxies, from anywhere: whom we find is no trusted proxy, unless all
 * are; what stands before that address changes nothing. */
#include "http/forwarded.h"

#include "base/buf.h"
#include "tests/fuzz/target.h"

static void must(bool truth)
{
    if (!truth)
        abort();
}

static void read_back(const struct net_addr *a)
{
    char text[NET_TEXT_BYTES];
    struct net_addr again;
    must(net_addr_text(a, text) && net_addr_parse(str_of(text), &again));
    must(memcmp(a, &again, sizeof again) == 0);
}

FUZZ_TARGET(data, size)
{
    struct str text = { (const char *)data, size };
    AUTO(buf_free) struct buf longer = BUF(size + 100);
    struct net_list given = { 0 }, trusted;
    struct net_addr who, other;
    struct err e = { 0 };
    must(net_list_parse(STR("10.0.0.0/8 fd00::/8"), &trusted, &e) == 0);
    if (net_list_parse(text, &given, &e) == 0)
        for (size_t i = 0; i < given.n; i++)
            must(given.at[i].bits <= 128 && net_list_has(&given, &given.at[i].addr));
    else
        must(e.code == ERR_INVALID && e.msg[0]);
    if (!forwarded_for(&trusted, text, &who))
        return 0;
    read_back(&who);
    buf_addz(&longer, "198.51.100.1, ");
    buf_add(&longer, text);
    if (longer.n > FORWARDED_MAX)
        return 0;
    must(forwarded_for(&trusted, buf_str(&longer), &other));
    must(net_list_has(&trusted, &who) || memcmp(&who, &other, sizeof who) == 0);
    return 0;
}
