/* map - a hash table from 64-bit keys to 64-bit values, and names to small numbers on top of it.
 *
 * Iteration order is not offered on purpose: nothing that decides may depend on a hash.
 */
#ifndef NS_BASE_MAP_H
#define NS_BASE_MAP_H

#include "base/str.h"

struct map {
    struct map_slot *slots;
    size_t n, cap; /* cap is a power of two, or 0 */
};

void map_set(struct map *m, uint64_t key, uint64_t value);
bool map_get(const struct map *m, uint64_t key, uint64_t *out_value);
bool map_remove(struct map *m, uint64_t key);
void map_free(struct map *m);

/* names - strings numbered 0, 1, 2 … in the order they were first seen.  A name ends at its NUL. */
struct names {
    char **name;
    uint32_t *next; /* chains equal hashes */
    size_t n, cap;
    struct map by_hash;
};

#define NAME_NONE UINT32_MAX

uint32_t names_find(const struct names *t, struct str name);   /* NAME_NONE when unknown */
uint32_t names_intern(struct names *t, struct str name);       /* adds it when unknown */
const char *names_get(const struct names *t, uint32_t number); /* until names_free */
void names_free(struct names *t);

#endif
