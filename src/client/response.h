/* response - one HTTP/1.1 answer, read from bytes as they come: no I/O.
 *
 * First response_head until the head is whole, then response_body until it is done.  Both say how
 * many bytes they are through with; what they hand out lies inside what they were given.  Bodies
 * with a length, in chunks, or up to the end of the connection; everything is bounded.
 */
#ifndef NS_CLIENT_RESPONSE_H
#define NS_CLIENT_RESPONSE_H

#include "base/err.h"
#include "base/str.h"

#define RESPONSE_HEAD_MAX (64u << 10)

enum response_state {
    RESPONSE_HEAD,
    RESPONSE_LENGTH,     /* `left` bytes of body are still to come */
    RESPONSE_TO_EOF,     /* the body ends with the connection */
    RESPONSE_CHUNK_SIZE, /* chunked: a line with the size */
    RESPONSE_CHUNK,      /* `left` bytes of this chunk are still to come */
    RESPONSE_CHUNK_END,  /* the empty line behind a chunk */
    RESPONSE_TRAILER,
    RESPONSE_DONE
};

struct response {
    enum response_state state;
    int status;
    bool keep_alive;
    uint64_t left;
    char type[64]; /* of the content, lower case, without parameters */
};

/* 0 with *out_used 0: the head is not whole yet. */
int response_head(struct response *r, struct str in, size_t *out_used, struct err *e) MUST_USE;

/* Call it until it uses nothing.  *out_body may be empty although bytes were used. */
int response_body(struct response *r, struct str in, size_t *out_used, struct str *out_body,
                  struct err *e) MUST_USE;

/* The connection ended here: is the answer complete? */
int response_eof(struct response *r, struct err *e) MUST_USE;

#endif
