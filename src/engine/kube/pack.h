/* pack - a record and all that it points to, in one allocation.
 *
 * A record is walked twice by the same function: at first everything is only counted and stays
 * where it is, then pack_alloc makes the room, and the second walk copies and turns the pointers.
 * Empty texts, and NULL, share one empty string and take no room.
 */
#ifndef NS_ENGINE_KUBE_PACK_H
#define NS_ENGINE_KUBE_PACK_H

#include "base/base.h"

struct pack {
    char *p; /* NULL while counting */
    size_t n;
};

/* The copy, or `from` itself while counting. */
void *pack_bytes(struct pack *k, const void *from, size_t n);
void pack_text(struct pack *k, const char **text);
void pack_alloc(struct pack *k); /* after the first walk */

#define pack_array(k, array, n) ((array) = pack_bytes((k), (array), (n) * sizeof *(array)))

#endif
