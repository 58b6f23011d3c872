/* vouch - whose machine an agent in a pod is of: the API server is asked (TokenReview).
 *
 * The agent's token is one of its service account, made for the audience `nightshift` and bound to its pod; the
 * API server says whether it is good and on which node that pod is (Kubernetes 1.30).  Answers are kept for some
 * minutes, by the token's hash, so that a report costs nothing; what is not known yet is asked, and the agent comes
 * again.  Few are asked at once, and what is kept has a bound.
 */
#ifndef NS_DAEMON_VOUCH_H
#define NS_DAEMON_VOUCH_H

#include "kube/client.h"
#include "sys/clock.h"
#include "sys/log.h"
#include "sys/loop.h"

#define VOUCH_AUDIENCE "nightshift"
#define VOUCH_ACCOUNT "nightshift-agent" /* in the daemon's own namespace */

struct vouch;

/* Takes `server`. */
struct vouch *vouch_new(struct loop *l, struct log *log, struct kube_config *server,
                        const char *space, struct err *e);
struct vouch *vouch_free(struct vouch *v); /* NULL ok; returns NULL */

/* 1: the name of its machine; 0: not known yet; -1: it is no token of an agent. */
int vouch_machine(void *vouch, struct str token, char out[static 65], struct err *e);

/* What a TokenReview says, to try: the machine, or an error. */
int vouch_read(struct str review, const char *account, char out[static 65], struct err *e) MUST_USE;

#endif
