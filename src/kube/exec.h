/* exec - a command in a container, as a socket: what is written there is its input, what is read its output.
 *
 * Over a WebSocket (v5.channel.k8s.io, or v4) with the client's certificates and token.  Both ways wait for the
 * slower side.  shutdown(SHUT_WR) ends the command's input (with v5; v4 cannot say it); closing the socket ends
 * everything.  When the command has ended and all of its output was delivered, our end is closed and on_end runs.
 * What the command says on stderr is kept for the error, the first KUBE_EXEC_STDERR_MAX bytes of it.
 */
#ifndef NS_KUBE_EXEC_H
#define NS_KUBE_EXEC_H

#include "kube/client.h"

#define KUBE_EXEC_STDERR_MAX 4096
#define KUBE_EXEC_WORDS_MAX 1024 /* of argv */

struct kube_exec_request {
    const char *ns, *pod, *container; /* container NULL: the pod's first */
    const char *const *argv;          /* ends with NULL */
    bool tty;                         /* stderr comes with the output then */
    bool no_input;                    /* the command gets no stdin at all */
};

/* exit_code -1: it is not known, *why says why.  why is NULL when the command ended with 0.
 * `complaints` is its stderr. */
typedef void kube_exec_fn(void *ctx, int exit_code, struct str complaints, const struct err *why);

/* The caller's end, non-blocking and close-on-exec; the caller closes it.  on_end runs exactly once, on the loop,
 * unless the client is freed before. */
int kube_exec(struct kube_client *c, const struct kube_exec_request *rq, kube_exec_fn *on_end,
              void *ctx, struct err *e) MUST_USE;

/* What the status channel says at the end.  Pure. */
int kube_exec_status(struct str json, int *out_code, struct err *e) MUST_USE;

#endif
