/* zone - "Europe/Berlin" as a rule, from the time zone database of the machine; and its own zone.
 *
 * The database holds every change of the past and a rule for the future.  We take the rule, and only
 * if it is the whole future: a zone that will change its law, or whose changes follow no rule (such as
 * those of Ramadan), is refused by name rather than be wrong later.
 *
 * `root` is put before every path; "" is the machine itself.
 */
#ifndef NS_SYS_ZONE_H
#define NS_SYS_ZONE_H

#include "base/tz.h"

#define ZONE_NAME_MAX 63
#define ZONE_FILE_MAX (64 << 10)

/* "UTC" needs no database. */
int zone_find(const char *root, struct str name, int64_t now_ms, struct tz *out, struct err *e)
    MUST_USE;

/* What /etc/localtime links to, else what /etc/timezone says; "UTC" when there is neither, as for
 * the C library. */
int zone_of_host(const char *root, char out[static ZONE_NAME_MAX + 1], struct err *e) MUST_USE;

/* The content of one file of the database (TZif, RFC 8536); errors name what is wrong with it. */
int zone_parse(struct str bytes, int64_t now_ms, struct tz *out, struct err *e) MUST_USE;

#endif
