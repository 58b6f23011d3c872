#include "http/forwarded.h"

#include <arpa/inet.h>
#include <stdio.h>

#include "base/parse.h"

static const uint8_t mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

static bool is_v4(const struct net_addr *a)
{
    return memcmp(a->b, mapped, sizeof mapped) == 0;
}

bool net_addr_parse(struct str text, struct net_addr *out)
{
    char z[NET_TEXT_BYTES];
    struct net_addr a;
    if (text.n == 0 || text.n >= sizeof z || memchr(text.p, '\0', text.n))
        return false;
    memcpy(z, text.p, text.n);
    z[text.n] = '\0';
    if (inet_pton(AF_INET, z, a.b + sizeof mapped) == 1)
        memcpy(a.b, mapped, sizeof mapped);
    else if (inet_pton(AF_INET6, z, a.b) != 1)
        return false;
    *out = a;
    return true;
}

const char *net_addr_text(const struct net_addr *a, char out[static NET_TEXT_BYTES])
{
    return is_v4(a) ? inet_ntop(AF_INET, a->b + sizeof mapped, out, NET_TEXT_BYTES)
                    : inet_ntop(AF_INET6, a->b, out, NET_TEXT_BYTES);
}

/* Whoever has one address of a /64 has all of them. */
uint64_t net_addr_key(const struct net_addr *a)
{
    uint64_t key;
    uint32_t v4;
    memcpy(&v4, a->b + sizeof mapped, sizeof v4);
    memcpy(&key, a->b, sizeof key);
    return is_v4(a) ? ntohl(v4) : key;
}

/* ---- networks ---- */

static bool same_bits(const struct net_addr *a, const struct net_addr *b, unsigned bits)
{
    unsigned whole = bits / 8, rest = bits % 8;
    unsigned mask = 0xff00u >> rest & 0xff;
    return memcmp(a->b, b->b, whole) == 0 &&
           (rest == 0 || ((a->b[whole] ^ b->b[whole]) & mask) == 0);
}

static int parse_net(struct str text, struct net_addr *addr, unsigned *bits, struct err *e)
{
    struct str host, length;
    struct net_addr a;
    uint64_t n = 0;
    struct err unused;
    bool has_length = str_cut(text, '/', &host, &length);
    bool good = net_addr_parse(host, &a);
    unsigned most = good && is_v4(&a) ? 32 : 128;
    if (good && has_length)
        good = parse_u64(length, most, &n, &unused) == 0 && n > 0;
    *bits = has_length ? (unsigned)n + 128 - most : 128;
    for (unsigned i = *bits; good && i < 128; i++) /* nothing beyond its length */
        good = !(a.b[i / 8] & (0x80u >> i % 8));
    if (!good) {
        err_set(e, ERR_INVALID, "'%.*s' is not an address or a network",
                (int)MIN(text.n, (size_t)60), text.p);
        return err_hint(e, "e.g. 127.0.0.1, 10.0.0.0/8, fd00::/8");
    }
    *addr = a;
    return 0;
}

int net_list_parse(struct str text, struct net_list *out, struct err *e)
{
    struct net_list l = { 0 };
    struct str piece, word;
    bool more = true;
    while (more) {
        more = str_cut(text, ',', &piece, &text);
        while (str_next_word(&piece, &word)) {
            if (l.n == NETS_MAX)
                return err_set(e, ERR_INVALID, "there are more than %d networks", NETS_MAX);
            if (parse_net(word, &l.at[l.n].addr, &l.at[l.n].bits, e) < 0)
                return -1;
            l.n++;
        }
    }
    *out = l;
    return 0;
}

bool net_list_has(const struct net_list *l, const struct net_addr *a)
{
    for (size_t i = 0; i < l->n; i++)
        if (same_bits(&l->at[i].addr, a, l->at[i].bits))
            return true;
    return false;
}

/* ---- X-Forwarded-For ---- */

bool forwarded_for(const struct net_list *trusted, struct str header, struct net_addr *out)
{
    struct net_addr a;
    bool more = header.n <= FORWARDED_MAX;
    if (!more)
        return false;
    while (more) {
        size_t at = header.n;
        while (at > 0 && header.p[at - 1] != ',')
            at--;
        if (!net_addr_parse(str_trim((struct str){ header.p + at, header.n - at }), &a))
            return false;
        more = at > 0 && net_list_has(trusted, &a);
        header.n = at ? at - 1 : 0;
    }
    *out = a;
    return true;
}
