/* websocket - RFC 6455 as a client speaks it: the handshake, and frames.  Pure: bytes in, bytes out.
 *
 * What a server may not send (masked frames, unknown kinds, long or split control frames, more than
 * KUBE_WS_PAYLOAD_MAX) is an error, after which the connection is of no use.  Messages in several frames are the
 * caller's to put together.  The key of the handshake is always the same: it proves that the other side has read
 * it, and who the other side is, TLS has proved.
 */
#ifndef NS_KUBE_WEBSOCKET_H
#define NS_KUBE_WEBSOCKET_H

#include "base/buf.h"

#define KUBE_WS_PAYLOAD_MAX ((size_t)1 << 20) /* bytes of a frame */
#define KUBE_WS_HEAD_MAX ((size_t)14)         /* bytes of a frame before its payload */
#define KUBE_WS_WELCOME_MAX ((size_t)16 << 10)

enum kube_ws_kind {
    KUBE_WS_MORE = 0, /* the message of the frame before goes on */
    KUBE_WS_TEXT = 1,
    KUBE_WS_BINARY = 2,
    KUBE_WS_CLOSE = 8,
    KUBE_WS_PING = 9,
    KUBE_WS_PONG = 10
};

struct kube_ws_frame {
    enum kube_ws_kind kind;
    bool last;          /* of its message */
    struct str payload; /* inside what was read */
};

/* 1: *out is the frame at the front and *out_n its length; 0: it is not all there yet; -1: an error. */
int kube_ws_read(struct str in, struct kube_ws_frame *out, size_t *out_n, struct err *e) MUST_USE;

/* Adds one whole message: head and payload together, masked.  The mask has to be random. */
void kube_ws_write(struct buf *out, enum kube_ws_kind kind, struct str head, struct str payload,
                   const uint8_t mask[static 4]);

/* Adds the request for an upgrade.  `protocols` is a list with commas, `bearer` a whole header or NULL. */
struct kube_ws_hello {
    struct str host, path;
    const char *protocols, *bearer;
};
void kube_ws_hello(struct buf *out, const struct kube_ws_hello *hello);

/* The answer: 1: *out; 0: its head is not all there; -1: it is no answer of a web server. */
struct kube_ws_welcome {
    int status;          /* 101: and everything is as it should be */
    size_t head_n;       /* bytes before the first frame, or before the body of a refusal */
    size_t body_n;       /* of a refusal, as it says; SIZE_MAX: until the end */
    struct str protocol; /* inside what was read; may be empty */
};
int kube_ws_welcome(struct str in, struct kube_ws_welcome *out, struct err *e) MUST_USE;

#endif
