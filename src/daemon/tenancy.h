/* tenancy - tells an engine that has tenants of its own (namespaces) who they are, and who is in them.
 *
 * It looks again a second after a change, and every five seconds, and says only what differs from what it said.
 */
#ifndef NS_DAEMON_TENANCY_H
#define NS_DAEMON_TENANCY_H

#include "auth/auth.h"
#include "control/control.h"

struct tenancy;

/* NULL when the engine has no such tenants.  All are borrowed. */
struct tenancy *tenancy_new(struct loop *l, struct log *log, struct control *c, struct auth *auth);
struct tenancy *tenancy_free(struct tenancy *t); /* NULL ok; returns NULL */

#endif
