/* credential - who we are to the API server, kept fresh: a fixed token, one in a file, or a plugin's.
 *
 * A file is looked at again when it changed, at most once in 10 s, and at once after a 401.  A plugin is run
 * when there is no token or it has expired, on the loop; whoever asks meanwhile waits for on_change.  After a
 * failure it is run again a second later at the earliest.  Each new credential has a higher version.
 */
#ifndef NS_KUBE_CREDENTIAL_H
#define NS_KUBE_CREDENTIAL_H

#include "kube/config.h"
#include "sys/loop.h"

struct kube_credential;

enum kube_credential_state {
    KUBE_CREDENTIAL_READY,
    KUBE_CREDENTIAL_COMING, /* on_change tells when to ask again */
    KUBE_CREDENTIAL_FAILED
};

struct kube_identity {
    const char *bearer; /* "Authorization: Bearer …", or NULL; until on_change, get or refused */
    struct str cert, key; /* PEM; p NULL: none */
    uint64_t version;
};

/* The config is borrowed for as long as this lives. */
struct kube_credential *kube_credential_new(struct loop *l, const struct kube_config *config,
                                            loop_fn *on_change, void *ctx);
struct kube_credential *kube_credential_free(struct kube_credential *c); /* NULL ok; returns NULL */

/* *out on READY, *e on FAILED. */
enum kube_credential_state kube_credential_get(struct kube_credential *c, struct kube_identity *out,
                                               struct err *e);

/* The server answered 401 to that version.  true: there is another one, or it is on its way. */
bool kube_credential_refused(struct kube_credential *c, uint64_t version);

#endif
