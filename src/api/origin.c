#include "api/origin.h"

#include <stdio.h>

#include "base/url.h"

/* By Host alone we know no scheme; what came by TLS was not sent by a page without it. */
static bool is_of_host(const struct url *from, const struct origin_facts *f)
{
    char text[512];
    struct url own;
    struct err e;
    if (!f->host || (f->secure && !from->https) ||
        (size_t)snprintf(text, sizeof text, "%s://%s", from->https ? "https" : "http", f->host) >=
            sizeof text)
        return false;
    return url_parse(str_of(text), &own, &e) == 0 && !own.path.n && !own.has_query &&
           url_same_origin(from, &own);
}

static bool is_ours(const char *text, const struct origin_facts *f)
{
    struct url from, own;
    struct err e;
    if (url_parse(str_of(text), &from, &e) < 0)
        return false;
    return is_of_host(&from, f) ||
           (f->external_url && url_parse(str_of(f->external_url), &own, &e) == 0 &&
            url_same_origin(&from, &own));
}

static int refuse(const char *header, const char *value, struct err *e)
{
    err_set(e, ERR_DENIED, "this was sent by a page of another site (%s: %.100s)", header, value);
    err_about(e, "%s", header);
    return err_hint(e, "if people reach this server by that address, set external_url to it");
}

int origin_check(const struct origin_facts *f, struct err *e)
{
    if (f->origin)
        return is_ours(f->origin, f) ? 0 : refuse("Origin", f->origin, e);
    if (f->fetch_site)
        return strcmp(f->fetch_site, "same-origin") == 0 || strcmp(f->fetch_site, "none") == 0
                 ? 0
                 : refuse("Sec-Fetch-Site", f->fetch_site, e);
    if (f->referer)
        return is_ours(f->referer, f) ? 0 : refuse("Referer", f->referer, e);
    if (f->json || strcmp(f->method, "POST") != 0)
        return 0;
    err_set(e, ERR_DENIED, "a request with a session must say where it comes from");
    err_about(e, "Origin");
    return err_hint(e, "send the header Origin, or Content-Type: application/json; or use a token");
}
