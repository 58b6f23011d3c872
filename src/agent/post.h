/* post - one connection to the control plane, over which reports are posted one after the other.
 *
 * Blocks, with a bound: it lives on the sender's thread.  A connection that went stale is opened again once
 * before a post counts as failed.
 */
#ifndef NS_AGENT_POST_H
#define NS_AGENT_POST_H

#include "base/buf.h"

struct post;

struct post_config {
    const char *server; /* as NIGHTSHIFT_SERVER; borrowed */
    const char *token;  /* NULL: that of the file, or the socket tells who we are; borrowed */
    /* Read for every post, since a cluster makes tokens anew all the time; NULL: none */
    const char *token_file;
    int timeout_ms;
};

struct post *post_new(const struct post_config *c,
                      struct err *e);   /* NULL: the address is no address */
struct post *post_free(struct post *p); /* NULL ok; returns NULL */

/* The answer's status and body; -1: there was no whole answer. */
int post_send(struct post *p, const char *path, struct str body, struct buf *out_answer,
              int *out_status, struct err *e) MUST_USE;

#endif
