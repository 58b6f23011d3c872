/* gangnet - the replicas of one run of a job share one network: they are each other's localhost.
 *
 * So rank 0 is at 127.0.0.1 for all of them, on ports that no other job sees.  The namespace is taken
 * with the first and given back with the last.
 */
#ifndef NS_KEEPER_GANGNET_H
#define NS_KEEPER_GANGNET_H

#include "keeper/net.h"

struct gangnet;

struct gangnet *gangnet_new(struct net *n);      /* n NULL: every take fails */
struct gangnet *gangnet_free(struct gangnet *g); /* NULL ok; returns NULL; before net_free */

/* `task` is JOB.RUN.REPLICA; fn may run before this returns. */
void gangnet_take(struct gangnet *g, const char *task, struct str tenant, net_done_fn *fn,
                  void *ctx);
int gangnet_adopt(struct gangnet *g, const char *task, const char *path, struct err *e) MUST_USE;
void gangnet_give_back(struct gangnet *g, const char *path);

#endif
