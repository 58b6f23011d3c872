/* reading - the answer to one request, put together from bytes as they come: no I/O. */
#ifndef NS_CLI_READING_H
#define NS_CLI_READING_H

#include "base/buf.h"
#include "client/response.h"

struct reading {
    struct response response;
    struct buf raw; /* not used yet */
    struct buf body;
};

/* Adds bytes and takes what can be taken of them; response.state says how far it is. */
int reading_add(struct reading *r, struct str bytes, struct err *e) MUST_USE;
void reading_clear(struct reading *r); /* for AUTO */

#endif
