/* sse - server-sent events out of bytes as they come: no I/O. */
#ifndef NS_CLI_SSE_H
#define NS_CLI_SSE_H

#include "base/buf.h"

#define SSE_EVENT_MAX (1u << 20)

struct sse {
    struct buf line, data;
    char id[64];
    bool given; /* `data` was given out */
};

struct sse_event {
    struct str data;
    const char *id;
};

struct sse sse_new(void);
void sse_clear(struct sse *s); /* for AUTO */

/* Takes bytes off *chunk.  1: an event, valid until the next call; 0: the chunk is used up. */
int sse_next(struct sse *s, struct str *chunk, struct sse_event *out, struct err *e) MUST_USE;

#endif
