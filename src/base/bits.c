#include "base/bits.h"

#include <assert.h>
#include <string.h>

/* Bit i of level k+1 says that word i of level k is not empty.  Growing only appends zero words:
 * where a member's bits lie never changes. */
#define LEVELS 4

static uint32_t lowest(uint64_t word)
{
    return (uint32_t)__builtin_ctzll(word);
}

static void grow(struct bits *b, uint32_t x)
{
    uint32_t want = b->words[0] ? b->words[0] : 1;
    while (want <= x >> 6)
        want *= 2;
    for (int l = 0; l < LEVELS; l++) {
        if (want > b->words[l]) {
            b->level[l] = xrealloc(b->level[l], want, sizeof(uint64_t));
            memset(b->level[l] + b->words[l], 0, (want - b->words[l]) * sizeof(uint64_t));
            b->words[l] = want;
        }
        want = (want + 63) / 64;
    }
}

void bits_add(struct bits *b, uint32_t x)
{
    assert(x < BITS_MAX);
    if (x >> 6 >= b->words[0])
        grow(b, x);
    if (bits_has(b, x))
        return;
    b->n++;
    for (int l = 0; l < LEVELS; l++, x >>= 6) {
        uint64_t *word = &b->level[l][x >> 6], was = *word;
        *word = was | UINT64_C(1) << (x & 63);
        if (was)
            return; /* the levels above know already */
    }
}

void bits_remove(struct bits *b, uint32_t x)
{
    if (!bits_has(b, x))
        return;
    b->n--;
    for (int l = 0; l < LEVELS; l++, x >>= 6)
        if ((b->level[l][x >> 6] &= ~(UINT64_C(1) << (x & 63))))
            return;
}

bool bits_has(const struct bits *b, uint32_t x)
{
    return x >> 6 < b->words[0] && (b->level[0][x >> 6] >> (x & 63) & 1);
}

uint32_t bits_first(const struct bits *b)
{
    return bits_next(b, 0);
}

uint32_t bits_next(const struct bits *b, uint32_t from)
{
    uint32_t at = from;
    for (int l = 0; l < LEVELS && at >> 6 < b->words[l]; l++) {
        uint32_t w = at >> 6;
        uint64_t left = b->level[l][w] & ~UINT64_C(0) << (at & 63);
        if (left) {
            at = w * 64 + lowest(left);
            while (l > 0)
                at = at * 64 + lowest(b->level[--l][at]);
            return at;
        }
        at = w + 1;
    }
    return BITS_NONE;
}

void bits_free(struct bits *b)
{
    for (int l = 0; l < LEVELS; l++)
        free(b->level[l]);
    *b = (struct bits){ 0 };
}
