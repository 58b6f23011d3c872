#include "sys/ip.h"

#include <arpa/inet.h>
#include <stdio.h>

struct block {
    uint8_t ip[IP_BYTES];
    unsigned bits;
    enum ip_kind kind;
};

#define V4(a, b, c, d)                                                                             \
    {                                                                                              \
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d                                       \
    }

/* The first that fits counts. */
static const struct block blocks[] = {
    { V4(0, 0, 0, 0), 96 + 8, IP_HERE },
    { V4(127, 0, 0, 0), 96 + 8, IP_HERE },
    { V4(169, 254, 0, 0), 96 + 16, IP_HERE },
    { V4(192, 0, 0, 0), 96 + 24, IP_HERE },
    { V4(224, 0, 0, 0), 96 + 3, IP_HERE }, /* multicast, reserved, broadcast */
    { V4(10, 0, 0, 0), 96 + 8, IP_PRIVATE },
    { V4(100, 64, 0, 0), 96 + 10, IP_PRIVATE },
    { V4(172, 16, 0, 0), 96 + 12, IP_PRIVATE },
    { V4(192, 168, 0, 0), 96 + 16, IP_PRIVATE },
    { V4(198, 18, 0, 0), 96 + 15, IP_PRIVATE },
    { V4(0, 0, 0, 0), 96, IP_PUBLIC },
    { { 0 }, 96, IP_HERE }, /* ::, ::1, and addresses in a form that nobody uses */
    { { 0xfd, 0x00, 0x0e, 0xc2 }, 32, IP_HERE }, /* where a cloud tells a machine its secrets */
    { { 0xfc }, 7, IP_PRIVATE },
    { { 0xfe, 0x80 }, 9, IP_HERE }, /* link-local, and site-local as it was */
    { { 0xff }, 8, IP_HERE },
};

static bool is_in(const uint8_t *ip, const struct block *b)
{
    for (unsigned i = 0; i < b->bits; i++)
        if (((ip[i / 8] ^ b->ip[i / 8]) >> (7 - i % 8)) & 1)
            return false;
    return true;
}

/* The IPv4 address that such a one leads to. */
static bool inner(const uint8_t *ip, uint8_t out[static IP_BYTES])
{
    static const uint8_t translated[12] = { 0x00, 0x64, 0xff, 0x9b };
    bool to4 = ip[0] == 0x20 && ip[1] == 0x02;
    if (!to4 && memcmp(ip, translated, sizeof translated) != 0)
        return false;
    ip_from_v4(to4 ? ip + 2 : ip + 12, out);
    return true;
}

enum ip_kind ip_kind(const uint8_t ip[static IP_BYTES])
{
    uint8_t v4[IP_BYTES];
    if (inner(ip, v4))
        return ip_kind(v4);
    for (size_t i = 0; i < ARRAY_LEN(blocks); i++)
        if (is_in(ip, &blocks[i]))
            return blocks[i].kind;
    return IP_PUBLIC;
}

void ip_from_v4(const uint8_t v4[static 4], uint8_t out[static IP_BYTES])
{
    memset(out, 0, 10);
    memset(out + 10, 0xff, 2);
    memcpy(out + 12, v4, 4);
}

bool ip_parse(struct str text, uint8_t out[static IP_BYTES])
{
    char z[64];
    uint8_t v4[4], v6[IP_BYTES];
    if (text.n > 2 && text.p[0] == '[' && text.p[text.n - 1] == ']')
        text = (struct str){ text.p + 1, text.n - 2 };
    if (text.n == 0 || text.n >= sizeof z || memchr(text.p, '\0', text.n))
        return false;
    memcpy(z, text.p, text.n);
    z[text.n] = '\0';
    if (inet_pton(AF_INET, z, v4) == 1) {
        ip_from_v4(v4, out);
        return true;
    }
    if (inet_pton(AF_INET6, z, v6) != 1)
        return false;
    memcpy(out, v6, sizeof v6);
    return true;
}
