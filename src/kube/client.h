/* client - requests to a Kubernetes API server, on the loop: calls with an answer, and streams.
 *
 * Calls go over one HTTP/2 connection, over up to four when there are many, at most in_flight_max at a time and the
 * rest are begun in their order; watches have another connection.  A time-out makes new ones for those after it.
 * A call is tried once more after a 401 when the token has changed meanwhile, and when the connection it was given to
 * was closing and no byte came back; nothing else is: 429, 409 and the rest are the caller's to answer.  Without an
 * answer a call may or may not have been carried out, and a lost connection may have it carried out twice: give what
 * you create a name.
 * Callbacks run on the loop and never inside a call to this module, and may send, cancel, open and close whatever
 * they like; only kube_client_free is not for them.  It knows JSON only where a server tells what went wrong.
 */
#ifndef NS_KUBE_CLIENT_H
#define NS_KUBE_CLIENT_H

#include "kube/config.h"
#include "sys/log.h"
#include "sys/loop.h"

#define KUBE_IN_FLIGHT 64                 /* unless set */
#define KUBE_TIMEOUT_MS 30000             /* unless the request says */
#define KUBE_BYTES_MAX ((size_t)64 << 20) /* of an answer, unless the request says */

struct kube_client;
struct kube_call;
struct kube_stream;

struct kube_request {
    const char *method;       /* NULL: GET */
    struct str path;          /* with its query: "/api/v1/pods?limit=500" */
    const char *content_type; /* NULL: application/json */
    struct str body;          /* copied */
    uint64_t timeout_ms;      /* 0: KUBE_TIMEOUT_MS; from when its turn has come */
    size_t max_bytes;         /* of the answer; 0: KUBE_BYTES_MAX */
};

/* Valid inside the callback only. */
struct kube_reply {
    int status;             /* 0: no answer */
    struct str body;        /* ends with a NUL */
    int64_t retry_after_ms; /* 0: the server did not say */
    struct err err;         /* why there is no answer, or what the server's Status object says */
    struct str reason;      /* Status.reason, e.g. "AlreadyExists"; may be empty */
};

typedef void kube_reply_fn(void *ctx, const struct kube_reply *r);

/* The config is borrowed for as long as the client lives.  The log may be NULL. */
struct kube_client *kube_client_new(struct loop *l, struct log *log,
                                    const struct kube_config *config, struct err *e);

/* NULL ok; returns NULL.  What is open is gone without a word. */
struct kube_client *kube_client_free(struct kube_client *c);
void kube_client_free_p(struct kube_client **c);
void kube_client_set_in_flight(struct kube_client *c, size_t max); /* from 1 */
size_t kube_client_waiting(const struct kube_client *c); /* calls that were not begun yet */

/* fn runs exactly once, never inside kube_send; the call is gone then. */
struct kube_call *kube_send(struct kube_client *c, const struct kube_request *rq, kube_reply_fn *fn,
                            void *ctx);
struct kube_call *kube_cancel(struct kube_call *call); /* NULL ok; returns NULL; fn never runs */

/* A GET whose answer goes on: a log that is followed.  It has a connection of its own (HTTP/1.1), because a
 * stream that pauses would hold up everything that shares its connection.
 * on_data comes first with no bytes, when the server has agreed, then with some; false pauses after them until
 * kube_stream_resume.  on_end runs once, after the last of them; the stream is gone then.  Its reply has
 * status 2xx without an error when the server ended it, with an error when it was cut.
 * idle_ms: without a byte for so long it is cut; 0: never.  Streams do not count as in flight. */
typedef bool kube_data_fn(void *ctx, struct str chunk);

struct kube_stream *kube_open(struct kube_client *c, struct str path, uint64_t idle_ms,
                              kube_data_fn *on_data, kube_reply_fn *on_end, void *ctx);

/* The same over a connection that all of these share: for a watch.  on_data must not pause. */
struct kube_stream *kube_open_shared(struct kube_client *c, struct str path, uint64_t idle_ms,
                                     kube_data_fn *on_data, kube_reply_fn *on_end, void *ctx);
struct kube_stream *kube_close(
    struct kube_stream *s); /* NULL ok; returns NULL; on_end never runs */
void kube_stream_resume(struct kube_stream *s);

#endif
