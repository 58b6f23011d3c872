/* bits - an ordered set of small numbers: a bitmap with summary levels above it.
 *
 * Insert and remove touch at most four words and "the smallest member at or after x" at most seven,
 * whatever the size; so a set of a hundred thousand nodes gives its lowest member in a few
 * nanoseconds, independent of history.
 */
#ifndef NS_BASE_BITS_H
#define NS_BASE_BITS_H

#include "base/base.h"

#define BITS_NONE UINT32_MAX
#define BITS_MAX (1u << 24)

struct bits {
    uint64_t *level[4];
    uint32_t words[4];
    uint32_t n; /* members */
};

void bits_add(struct bits *b, uint32_t x); /* grows as needed, up to BITS_MAX */
void bits_remove(struct bits *b, uint32_t x);
bool bits_has(const struct bits *b, uint32_t x);
uint32_t bits_first(const struct bits *b);               /* BITS_NONE when empty */
uint32_t bits_next(const struct bits *b, uint32_t from); /* smallest member >= from, or BITS_NONE */
void bits_free(struct bits *b);

#endif
