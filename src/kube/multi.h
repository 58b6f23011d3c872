/* multi - libcurl's transfers on our loop; the only file, with exec.c, that drives libcurl.
 *
 * on_done and on_turn run outside of libcurl, so they may add and remove transfers at will; on_turn comes after
 * every round of reading and writing.  A multi has connections of its own: transfers of two never share one.
 */
#ifndef NS_KUBE_MULTI_H
#define NS_KUBE_MULTI_H

#include <curl/curl.h>

#include "kube/credential.h"

struct kube_multi;
struct kube_transfer;

/* What a libcurl handle belongs to; the first member of whatever that is. */
struct kube_transfer {
    CURL *easy;
    struct kube_multi *multi; /* NULL: not under way */
    struct curl_slist *route; /* where to connect when it is not the host of the address */
    void (*done)(struct kube_transfer *t, CURLcode rc);
    char why[CURL_ERROR_SIZE];
};

struct kube_multi *kube_multi_new(struct loop *l, loop_fn *on_turn, void *ctx, struct err *e);
struct kube_multi *kube_multi_free(struct kube_multi *m); /* NULL ok; not inside its callbacks */

int kube_multi_add(struct kube_multi *m, struct kube_transfer *t, struct err *e) MUST_USE;
void kube_multi_remove(struct kube_transfer *t); /* nothing when it is not under way */
size_t kube_multi_count(const struct kube_multi *m);

/* Makes t->easy with everything that is the same for all requests to this server; -1 on want of memory. */
int kube_transfer_init(struct kube_transfer *t, const struct kube_config *config,
                       const struct kube_identity *who, struct err *e) MUST_USE;
void kube_transfer_clear(struct kube_transfer *t);

/* Its address: the server, then the path (and query). */
int kube_transfer_url(struct kube_transfer *t, const struct kube_config *config, struct str path,
                      struct err *e) MUST_USE;

/* What a failure of libcurl means to people. */
int kube_transfer_error(const struct kube_transfer *t, const struct kube_config *config,
                        CURLcode rc, struct err *e);

#endif
