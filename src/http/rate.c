#include "http/rate.h"

#define WAYS 8 /* places in the table that one peer may have */

/* Tokens are counted in thousandths: per_s of them come back every millisecond. */
struct bucket {
    uint64_t peer;
    uint64_t milli;
    int64_t at_ms;
    bool used;
};

struct rate {
    uint64_t per_s, full_milli;
    size_t sets; /* a power of two */
    struct bucket bucket[];
};

struct rate *rate_new(uint32_t per_s, uint32_t burst, size_t peers)
{
    size_t sets = 1;
    while (sets * WAYS < peers)
        sets *= 2;
    struct rate *r = xcalloc(1, sizeof *r + sets * WAYS * sizeof r->bucket[0]);
    r->per_s = MAX(per_s, 1u);
    r->full_milli = (uint64_t)MAX(burst, 1u) * 1000;
    r->sets = sets;
    return r;
}

struct rate *rate_free(struct rate *r)
{
    free(r);
    return NULL;
}

void rate_free_p(struct rate **r)
{
    *r = rate_free(*r);
}

static void refill(const struct rate *r, struct bucket *b, int64_t now_ms)
{
    uint64_t passed_ms = now_ms > b->at_ms ? (uint64_t)(now_ms - b->at_ms) : 0;
    uint64_t missing = r->full_milli - b->milli;
    if (!b->used || passed_ms > missing / r->per_s)
        b->milli = r->full_milli;
    else
        b->milli += passed_ms * r->per_s;
    b->at_ms = now_ms;
}

static uint64_t mix(uint64_t x)
{
    x ^= x >> 31;
    x *= UINT64_C(0x9e3779b97f4a7c15);
    return x ^ x >> 29;
}

/* The peer's own bucket, or else the fullest of the set, which becomes the peer's. */
static struct bucket *find(struct rate *r, uint64_t peer, int64_t now_ms)
{
    struct bucket *set = r->bucket + (mix(peer) & (r->sets - 1)) * WAYS;
    struct bucket *fullest = set;
    for (size_t i = 0; i < WAYS; i++) {
        refill(r, &set[i], now_ms);
        if (set[i].used && set[i].peer == peer)
            return &set[i];
        if (set[i].milli > fullest->milli)
            fullest = &set[i];
    }
    fullest->peer = peer;
    fullest->used = true;
    return fullest;
}

uint64_t rate_take(struct rate *r, uint64_t peer, int64_t now_ms)
{
    struct bucket *b = find(r, peer, now_ms);
    if (b->milli < 1000)
        return (1000 - b->milli + r->per_s - 1) / r->per_s;
    b->milli -= 1000;
    return 0;
}
