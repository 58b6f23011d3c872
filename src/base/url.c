#include "base/url.h"

#include <strings.h>

#include "base/parse.h"

static int refuse(struct str text, struct err *e)
{
    err_set(e, ERR_INVALID, "'%.*s' is not an address of the web", (int)MIN(text.n, (size_t)100),
            text.p);
    return err_hint(e, "e.g. https://lab.example/path, without user, blanks and #");
}

static bool take_scheme(struct str *rest, bool *out_https)
{
    static const struct {
        struct str text;
        bool https;
    } schemes[] = { { STR("https://"), true }, { STR("http://"), false } };
    for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
        size_t n = schemes[i].text.n;
        if (rest->n < n || strncasecmp(rest->p, schemes[i].text.p, n) != 0)
            continue;
        *out_https = schemes[i].https;
        *rest = (struct str){ rest->p + n, rest->n - n };
        return true;
    }
    return false;
}

static bool is_plain(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] <= ' ' || s.p[i] >= 0x7f || strchr("\"<>\\^`{|}#", s.p[i]))
            return false;
    return true;
}

static bool is_of(struct str s, const char *signs)
{
    for (size_t i = 0; i < s.n; i++)
        if (!strchr(signs, s.p[i]) || s.p[i] == '\0')
            return false;
    return s.n > 0;
}

#define DIGITS "0123456789"
#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

static bool is_host(struct str s)
{
    if (s.n > 2 && s.p[0] == '[' && s.p[s.n - 1] == ']')
        return is_of((struct str){ s.p + 1, s.n - 2 }, DIGITS "abcdefABCDEF:.");
    return s.n <= 253 && is_of(s, DIGITS LETTERS "-._");
}

/* "host", "host:80", "[::1]:80" */
static bool split_authority(struct str s, struct url *out)
{
    size_t colon = s.n;
    struct err e;
    uint64_t port;
    while (colon > 0 && s.p[colon - 1] != ':' && s.p[colon - 1] != ']')
        colon--;
    bool has_port = colon > 0 && s.p[colon - 1] == ':';
    out->host = has_port ? (struct str){ s.p, colon - 1 } : s;
    if (!is_host(out->host))
        return false;
    if (!has_port)
        return true;
    struct str digits = { s.p + colon, s.n - colon };
    if (parse_u64(digits, UINT16_MAX, &port, &e) < 0 || port == 0)
        return false;
    out->port = (uint16_t)port;
    return true;
}

int url_parse(struct str text, struct url *out, struct err *e)
{
    struct url u = { 0 };
    struct str rest = text;
    if (text.n > URL_MAX || !is_plain(text) || !take_scheme(&rest, &u.https))
        return refuse(text, e);
    u.port = u.https ? 443 : 80;
    size_t n = 0;
    while (n < rest.n && rest.p[n] != '/' && rest.p[n] != '?')
        n++;
    if (!split_authority((struct str){ rest.p, n }, &u))
        return refuse(text, e);
    u.has_query = str_cut((struct str){ rest.p + n, rest.n - n }, '?', &u.path, &u.query);
    *out = u;
    return 0;
}

static bool same_host(struct str a, struct str b)
{
    return a.n == b.n && strncasecmp(a.p, b.p, a.n) == 0;
}

bool url_same_origin(const struct url *a, const struct url *b)
{
    return a->https == b->https && a->port == b->port && same_host(a->host, b->host);
}

bool url_is_loopback(const struct url *u)
{
    return same_host(u->host, STR("127.0.0.1")) || same_host(u->host, STR("[::1]")) ||
           same_host(u->host, STR("localhost"));
}

void url_encode(struct str text, struct buf *out)
{
    for (size_t i = 0; i < text.n; i++)
        if (is_of((struct str){ text.p + i, 1 }, DIGITS LETTERS "-._~"))
            buf_addc(out, text.p[i]);
        else
            buf_printf(out, "%%%02X", (unsigned)(unsigned char)text.p[i]);
}
