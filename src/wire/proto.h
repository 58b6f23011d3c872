/* proto - Protocol Buffers' bytes, a field at a time: what a message is made of, without its description.
 *
 * Nothing is copied and nothing is kept: bytes are the caller's, and a message within a message is read by the
 * same call.  Groups, which nobody writes any more, are refused.  Pure.
 */
#ifndef NS_WIRE_PROTO_H
#define NS_WIRE_PROTO_H

#include "base/err.h"
#include "base/str.h"

enum proto_kind {
    PROTO_NUMBER, /* varint */
    PROTO_FIXED,  /* four or eight bytes */
    PROTO_BYTES,  /* text, bytes, a message, packed numbers */
};

struct proto_field {
    uint32_t number;
    enum proto_kind kind;
    uint64_t value;   /* of PROTO_NUMBER */
    struct str bytes; /* of the others */
};

/* Takes the next field off *rest: 1; 0 at the end; -1: these bytes are no message. */
int proto_next(struct str *rest, struct proto_field *out, struct err *e) MUST_USE;

#endif
