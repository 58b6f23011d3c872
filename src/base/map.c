#include "base/map.h"

/* Linear probing; removal shifts the followers back, so there are no tombstones and a long life
 * of churn does not slow it down.  Key 0 marks an empty slot; the real key 0 lives in one extra
 * slot behind the table (its key field says whether it is there). */
struct map_slot {
    uint64_t key, value;
};

#define FIRST_CAP 16u

/* Both multiplications matter: keys are often small consecutive numbers. */
static inline uint64_t mix(uint64_t x)
{
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    x ^= x >> 29;
    x *= UINT64_C(0x9fb21c651e98df25);
    return x ^ (x >> 32);
}

/* The slot that holds `key`, or the empty one where it would go. */
static inline size_t probe(const struct map *m, uint64_t key)
{
    size_t mask = m->cap - 1, i = (size_t)mix(key) & mask;
    while (m->slots[i].key != key && m->slots[i].key != 0)
        i = (i + 1) & mask;
    return i;
}

static void rehash(struct map *m, size_t cap)
{
    struct map grown = { .slots = xcalloc(cap + 1, sizeof *m->slots), .n = m->n, .cap = cap };
    for (size_t i = 0; i < m->cap; i++)
        if (m->slots[i].key)
            grown.slots[probe(&grown, m->slots[i].key)] = m->slots[i];
    if (m->cap)
        grown.slots[cap] = m->slots[m->cap];
    free(m->slots);
    *m = grown;
}

void map_set(struct map *m, uint64_t key, uint64_t value)
{
    if ((m->n + 1) * 3 > m->cap * 2)
        rehash(m, m->cap ? m->cap * 2 : FIRST_CAP);
    struct map_slot *s = &m->slots[key ? probe(m, key) : m->cap];
    if (s->key == 0)
        m->n++;
    s->key = key ? key : 1;
    s->value = value;
}

bool map_get(const struct map *m, uint64_t key, uint64_t *out_value)
{
    if (m->n == 0)
        return false;
    const struct map_slot *s = &m->slots[key ? probe(m, key) : m->cap];
    if (s->key == 0)
        return false;
    *out_value = s->value;
    return true;
}

bool map_remove(struct map *m, uint64_t key)
{
    if (m->n == 0)
        return false;
    size_t mask = m->cap - 1, hole = key ? probe(m, key) : m->cap;
    if (m->slots[hole].key == 0)
        return false;
    m->n--;
    for (size_t i = hole; key;) {
        i = (i + 1) & mask;
        if (m->slots[i].key == 0)
            break;
        /* A follower may fill the hole unless its home lies after the hole. */
        size_t home = (size_t)mix(m->slots[i].key) & mask;
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            m->slots[hole] = m->slots[i];
            hole = i;
        }
    }
    m->slots[hole].key = 0;
    return true;
}

void map_free(struct map *m)
{
    free(m->slots);
    *m = (struct map){ 0 };
}

static struct str until_nul(struct str s)
{
    return (struct str){ s.p, s.n ? strnlen(s.p, s.n) : 0 };
}

static uint32_t find_hashed(const struct names *t, struct str name, uint64_t hash)
{
    uint64_t first;
    if (!map_get(&t->by_hash, hash, &first))
        return NAME_NONE;
    for (uint32_t i = (uint32_t)first; i != NAME_NONE; i = t->next[i])
        if (str_is(name, t->name[i]))
            return i;
    return NAME_NONE;
}

uint32_t names_find(const struct names *t, struct str name)
{
    name = until_nul(name);
    return find_hashed(t, name, str_hash(name));
}

uint32_t names_intern(struct names *t, struct str name)
{
    name = until_nul(name);
    uint64_t hash = str_hash(name), first;
    uint32_t known = find_hashed(t, name, hash);
    if (known != NAME_NONE)
        return known;
    if (t->n == t->cap) {
        t->cap = t->cap ? t->cap * 2 : 8;
        t->name = xrealloc(t->name, t->cap, sizeof *t->name);
        t->next = xrealloc(t->next, t->cap, sizeof *t->next);
    }
    if (t->n >= NAME_NONE)
        abort();
    uint32_t number = (uint32_t)t->n++;
    t->name[number] = xcalloc(name.n + 1, 1);
    if (name.n)
        memcpy(t->name[number], name.p, name.n);
    t->next[number] = map_get(&t->by_hash, hash, &first) ? (uint32_t)first : NAME_NONE;
    map_set(&t->by_hash, hash, number);
    return number;
}

const char *names_get(const struct names *t, uint32_t number)
{
    return number < t->n ? t->name[number] : NULL;
}

void names_free(struct names *t)
{
    for (size_t i = 0; i < t->n; i++)
        free(t->name[i]);
    free(t->name);
    free(t->next);
    map_free(&t->by_hash);
    *t = (struct names){ 0 };
}
