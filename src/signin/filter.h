/* filter - search filters of a directory from a template: %u is the user's name, %d a DN, %% a %.
 *
 * What is put in is escaped as RFC 4515 demands, byte by byte, so that no name can change what is
 * searched: "*)(uid=*" finds whoever is called that.
 */
#ifndef NS_SIGNIN_FILTER_H
#define NS_SIGNIN_FILTER_H

#include "signin/refusal.h"

#define FILTER_MAX 8192

/* Adds to *out.  dn may be NULL where a template has no use for it: %d is then refused. */
int filter_expand(const char *template, const char *user, const char *dn, struct buf *out,
                  struct refusal *r);
bool filter_has(const char *template, char mark); /* 'u' or 'd' */

#endif
