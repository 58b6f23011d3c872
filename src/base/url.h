/* url - an address of the web, taken apart: "https://lab.example:8443/hub/oauth_callback?x=1".
 *
 * Strict: http or https, a host, no user, no fragment, printable ASCII without blanks, quotes or backslashes;
 * what a browser would read in another way than we do is refused.  Parts lie inside the text.  Pure.
 */
#ifndef NS_BASE_URL_H
#define NS_BASE_URL_H

#include "base/buf.h"

#define URL_MAX 2000 /* bytes */

struct url {
    bool https, has_query;
    struct str host; /* with its brackets when it is an IPv6 address */
    uint16_t port;   /* the scheme's when none was said */
    struct str path; /* "" or from its slash on */
    struct str query;
};

int url_parse(struct str text, struct url *out, struct err *e) MUST_USE;
bool url_same_origin(const struct url *a, const struct url *b); /* scheme, host and port */
bool url_is_loopback(const struct url *u); /* 127.0.0.1, [::1] or localhost, by its spelling */

void url_encode(struct str text, struct buf *out); /* for a value in a query */

#endif
