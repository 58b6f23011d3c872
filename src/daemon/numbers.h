/* numbers - the numbers of the policy in the settings file, as a person writes them.
 *
 * Names and bounds are the core's (core/policy.h).  A time may be written without its unit in the
 * name: `min_run: 2m` is `min_run_ms: 120000`.  What can only be 0 or 1 also takes no and yes.
 */
#ifndef NS_DAEMON_NUMBERS_H
#define NS_DAEMON_NUMBERS_H

#include "base/buf.h"
#include "base/json.h"
#include "core/policy.h"

/* The defaults, and what the section says; it may be NULL. */
int numbers_read(const struct json *section, struct policy *out, struct err *e) MUST_USE;
void numbers_print(const struct policy *p, struct buf *out); /* as such a section */

#endif
