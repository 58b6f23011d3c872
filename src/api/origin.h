/* origin - whether a request that a cookie vouches for was meant by whoever sits at the browser.
 *
 * A page of another site can make a browser send a request, with our cookie.  Browsers say where it comes from:
 *
 *   Origin            with everything but GET and HEAD, by every browser of these years
 *   Sec-Fetch-Site    where there is no Origin
 *   Referer           where there is neither
 *
 * The first of them that is there decides: it must name the address that people use (external_url), or the Host
 * of the request itself.  Without any of them the request is not from a page of such a browser; it passes when
 * it is one that no page can send to another site without asking first (CORS), and we never consent: with the type
 * application/json, or with PUT, PATCH or DELETE.  Pure.
 */
#ifndef NS_API_ORIGIN_H
#define NS_API_ORIGIN_H

#include "base/err.h"

struct origin_facts {
    const char *method;
    const char *origin, *fetch_site, *referer, *host; /* headers; NULL: not there */
    const char *external_url;                         /* NULL: not said */
    bool secure;                                      /* the request came by TLS */
    bool json;                                        /* its type is application/json */
};
int origin_check(const struct origin_facts *f, struct err *e) MUST_USE;

#endif
