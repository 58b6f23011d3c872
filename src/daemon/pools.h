/* pools - the section of the settings file that says which machines are lent, and when.
 *
 * Everything in it is checked here, and errors name the pool and the field; what comes out is in the
 * form that is kept (control/pool.h).
 */
#ifndef NS_DAEMON_POOLS_H
#define NS_DAEMON_POOLS_H

#include "base/json.h"
#include "control/control.h"

/* `section` may be NULL.  Strings live in `a`. */
int pools_read(const struct json *section, int64_t now_ms, struct arena *a,
               struct control_pool_def **out, size_t *out_n, struct err *e) MUST_USE;

#endif
