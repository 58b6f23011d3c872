#include "keeper/net_addr.h"

#include <arpa/inet.h>
#include <stdio.h>

#include "base/parse.h"

bool ip4_parse(struct str s, uint32_t *out)
{
    char text[IP4_TEXT];
    struct in_addr a;
    if (s.n == 0 || s.n >= sizeof text || memchr(s.p, 0, s.n))
        return false;
    memcpy(text, s.p, s.n);
    text[s.n] = 0;
    if (inet_pton(AF_INET, text, &a) != 1)
        return false;
    *out = ntohl(a.s_addr);
    return true;
}

const char *ip4_format(uint32_t ip, char out[static IP4_TEXT])
{
    snprintf(out, IP4_TEXT, "%u.%u.%u.%u", ip >> 24, ip >> 16 & 255, ip >> 8 & 255, ip & 255);
    return out;
}

bool ip4_is_loopback(uint32_t ip)
{
    return ip >> 24 == 127;
}

static uint32_t mask(unsigned bits)
{
    return bits == 0 ? 0 : UINT32_MAX << (32 - bits);
}

int cidr_parse(struct str s, struct cidr *out, struct err *e)
{
    struct str ip, bits;
    struct err ignored;
    uint32_t base;
    uint64_t n;
    bool ok = str_cut(s, '/', &ip, &bits) && ip4_parse(ip, &base) &&
              parse_u64(bits, 32, &n, &ignored) == 0;
    if (!ok) {
        err_set(e, ERR_INVALID, "'%.*s' is not a range of IPv4 addresses", STR_ARG(s));
        return err_hint(e, "write it like 10.203.0.0/16");
    }
    if (base & ~mask((unsigned)n)) {
        char text[IP4_TEXT];
        err_set(e, ERR_INVALID, "'%.*s' has address bits after its prefix", STR_ARG(s));
        return err_hint(e, "did you mean %s/%u?", ip4_format(base & mask((unsigned)n), text),
                        (unsigned)n);
    }
    *out = (struct cidr){ base, (unsigned)n };
    return 0;
}

bool cidr_overlap(struct cidr a, struct cidr b)
{
    uint32_t m = mask(MIN(a.bits, b.bits));
    return (a.base & m) == (b.base & m);
}

static uint32_t hex_digit(char c) /* 16: it is none */
{
    if (c >= '0' && c <= '9')
        return (uint32_t)(c - '0');
    return c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10) : 16;
}

/* The kernel prints addresses as the hex of their bytes in memory. */
static bool hex_word(struct str s, uint32_t *out)
{
    uint32_t v = 0;
    if (s.n != 8)
        return false;
    for (size_t i = 0; i < 8; i++) {
        uint32_t digit = hex_digit(s.p[i]);
        if (digit > 15)
            return false;
        v = v << 4 | digit;
    }
    *out = ntohl(v);
    return true;
}

static bool route_line(struct str line, struct route *out)
{
    struct str word[8], rest = line;
    for (size_t i = 0; i < ARRAY_LEN(word); i++)
        if (!str_next_word(&rest, &word[i]))
            return false;
    uint32_t to, m;
    if (word[0].n >= NET_DEV_MAX || !hex_word(word[1], &to) || !hex_word(word[7], &m))
        return false;
    unsigned bits = (unsigned)__builtin_popcount(m);
    if (m != mask(bits))
        return false;
    *out = (struct route){ .to = { to & m, bits } };
    memcpy(out->dev, word[0].p, word[0].n);
    return true;
}

size_t routes_parse(struct str text, struct route *out, size_t max)
{
    struct str line;
    size_t n = 0;
    while (n < max && str_next_line(&text, &line))
        if (route_line(line, &out[n]))
            n++;
    return n;
}
