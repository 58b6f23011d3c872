/* state - what the files of the client share; nobody else includes it. */
#ifndef NS_KUBE_STATE_H
#define NS_KUBE_STATE_H

#include <sys/queue.h>

#include "kube/client.h"
#include "kube/multi.h"

TAILQ_HEAD(kube_calls, kube_call);
TAILQ_HEAD(kube_streams, kube_stream);
TAILQ_HEAD(kube_execs, kube_exec);

struct kube_handle; /* a libcurl handle for calls, used again and again */

#define KUBE_LANES 4
#define KUBE_RETIRED_MAX (8 * (1 + KUBE_LANES))

struct kube_client {
    struct loop *loop;
    struct log *log;
    const struct kube_config *config;
    struct kube_credential *credential;
    struct loop_watch *kick; /* a timer: what was asked for outside is begun on the loop */
    struct kube_multi *lane[KUBE_LANES]; /* of the calls, a connection each */
    struct kube_multi *shared;           /* of the watches, one connection */
    struct kube_multi *own;              /* of other streams, a connection for each of them */
    struct kube_multi *retired[KUBE_RETIRED_MAX]; /* until their last transfer ends */
    struct kube_calls waiting, running;
    struct kube_streams streams, ready; /* those without and with something to tell */
    struct kube_execs execs;
    size_t n_ready, n_waiting, in_flight, in_flight_max;
    struct kube_handle *pool;
    uint64_t pool_version; /* of the identity its handles were made for */
    bool pumping;
};

void kube_client_kick(struct kube_client *c);

/* A connection of this multi does not answer: no transfer begun from now on uses one that is there now. */
void kube_client_retire(struct kube_client *c, const struct kube_multi *m);

struct curl_slist *kube_headers(const struct kube_identity *who, const char *content_type);

/* What a finished transfer means.  *out_doc, which reply->reason lies in, is the caller's to free. */
void kube_reply_fill(struct kube_reply *r, const struct kube_transfer *t,
                     const struct kube_client *c, CURLcode rc, struct json_doc **out_doc);

/* The same for an answer that libcurl did not read: r->status and r->body are there. */
void kube_reply_status(struct kube_reply *r, const struct kube_client *c,
                       struct json_doc **out_doc);

/* stream.c: begins what waits, tells what came. */
void kube_streams_pump(struct kube_client *c);
void kube_streams_free(struct kube_client *c);

/* exec.c: the same. */
void kube_execs_pump(struct kube_client *c);
void kube_execs_free(struct kube_client *c);

#endif
