#include "base/str.h"

bool str_eq(struct str a, struct str b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

bool str_is(struct str a, const char *z)
{
    return str_eq(a, str_of(z));
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

struct str str_trim(struct str s)
{
    while (s.n && is_blank(s.p[0]))
        s = (struct str){ s.p + 1, s.n - 1 };
    while (s.n && is_blank(s.p[s.n - 1]))
        s.n--;
    return s;
}

bool str_cut(struct str s, char sep, struct str *out_head, struct str *out_tail)
{
    const char *at = s.n ? memchr(s.p, sep, s.n) : NULL;
    if (!at) {
        *out_head = s;
        *out_tail = (struct str){ s.n ? s.p + s.n : s.p, 0 };
        return false;
    }
    size_t n = (size_t)(at - s.p);
    *out_head = (struct str){ s.p, n };
    *out_tail = (struct str){ at + 1, s.n - n - 1 };
    return true;
}

bool str_next_line(struct str *rest, struct str *out_line)
{
    if (rest->n == 0)
        return false;
    str_cut(*rest, '\n', out_line, rest);
    if (out_line->n && out_line->p[out_line->n - 1] == '\r')
        out_line->n--;
    return true;
}

bool str_next_word(struct str *rest, struct str *out_word)
{
    struct str s = *rest;
    while (s.n && is_blank(s.p[0]))
        s = (struct str){ s.p + 1, s.n - 1 };
    size_t n = 0;
    while (n < s.n && !is_blank(s.p[n]))
        n++;
    if (n == 0) {
        *rest = s;
        return false;
    }
    *out_word = (struct str){ s.p, n };
    *rest = (struct str){ s.p + n, s.n - n };
    return true;
}

bool str_take(struct str *rest, char c)
{
    if (rest->n == 0 || rest->p[0] != c)
        return false;
    *rest = (struct str){ rest->p + 1, rest->n - 1 };
    return true;
}

bool str_take_digits(struct str *rest, size_t n, uint32_t *out)
{
    uint32_t v = 0;
    if (rest->n < n)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (rest->p[i] < '0' || rest->p[i] > '9')
            return false;
        v = v * 10 + (uint32_t)(rest->p[i] - '0');
    }
    *rest = (struct str){ rest->p + n, rest->n - n };
    *out = v;
    return true;
}

size_t str_utf8_len(struct str s)
{
    static const struct {
        unsigned char lo, hi, next_lo, next_hi;
        size_t n;
    } leads[] = {
        { 0x00, 0x7f, 0, 0, 1 },       { 0xc2, 0xdf, 0x80, 0xbf, 2 }, { 0xe0, 0xe0, 0xa0, 0xbf, 3 },
        { 0xe1, 0xec, 0x80, 0xbf, 3 }, { 0xed, 0xed, 0x80, 0x9f, 3 }, { 0xee, 0xef, 0x80, 0xbf, 3 },
        { 0xf0, 0xf0, 0x90, 0xbf, 4 }, { 0xf1, 0xf3, 0x80, 0xbf, 4 }, { 0xf4, 0xf4, 0x80, 0x8f, 4 },
    };
    const unsigned char *u = (const unsigned char *)s.p;
    for (size_t i = 0; i < ARRAY_LEN(leads); i++) {
        if (u[0] < leads[i].lo || u[0] > leads[i].hi)
            continue;
        size_t n = leads[i].n;
        if (n > s.n || (n > 1 && (u[1] < leads[i].next_lo || u[1] > leads[i].next_hi)))
            return 0;
        for (size_t j = 2; j < n; j++)
            if (u[j] < 0x80 || u[j] > 0xbf)
                return 0;
        return n;
    }
    return 0;
}

bool str_is_utf8(struct str s)
{
    for (size_t n; s.n; s = (struct str){ s.p + n, s.n - n })
        if ((n = str_utf8_len(s)) == 0)
            return false;
    return true;
}

static uint64_t hash_step(uint64_t h, uint64_t word)
{
    h = (h ^ word) * UINT64_C(0x9fb21c651e98df25);
    return h ^ (h >> 29);
}

/* Eight bytes a step; the length goes in first, so that a zero-padded tail is unambiguous. */
uint64_t str_hash(struct str s)
{
    uint64_t h = hash_step(UINT64_C(0x2545f4914f6cdd1d), s.n), word;
    for (; s.n >= sizeof word; s.p += sizeof word, s.n -= sizeof word) {
        memcpy(&word, s.p, sizeof word);
        h = hash_step(h, word);
    }
    if (s.n) {
        word = 0;
        memcpy(&word, s.p, s.n);
        h = hash_step(h, word);
    }
    h *= UINT64_C(0xd6e8feb86659fd93);
    return h ^ (h >> 32);
}
