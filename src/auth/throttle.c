#include "auth/throttle.h"

#define WAYS 8
#define FIRST_MS 1000 /* the first wait; each further failure doubles it */
#define UNIT 1024     /* counts are kept in parts, so that they can fade */

struct count {
    uint64_t key;
    uint64_t parts;
    int64_t at_ms;
};

struct counts {
    size_t sets; /* a power of two */
    struct count *at;
};

struct throttle {
    struct counts pair, place, user;
};

static void counts_init(struct counts *c, size_t entries)
{
    c->sets = 1;
    while (c->sets * WAYS < entries)
        c->sets *= 2;
    c->at = xcalloc(c->sets * WAYS, sizeof *c->at);
}

struct throttle *throttle_new(size_t entries)
{
    struct throttle *t = xcalloc(1, sizeof *t);
    counts_init(&t->pair, entries);
    counts_init(&t->place, entries);
    counts_init(&t->user, entries);
    return t;
}

struct throttle *throttle_free(struct throttle *t)
{
    if (!t)
        return NULL;
    free(t->pair.at);
    free(t->place.at);
    free(t->user.at);
    free(t);
    return NULL;
}

void throttle_free_p(struct throttle **t)
{
    *t = throttle_free(*t);
}

static uint64_t mix(uint64_t x)
{
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    return x ^ x >> 32;
}

static uint64_t pair_of(const struct attempt *a)
{
    return mix(a->user) ^ (a->place * UINT64_C(0x9e3779b97f4a7c15) + (a->known ? 1 : 0));
}

/* Halved for each stretch that has passed; a clock that was set back changes nothing. */
static uint64_t faded(const struct count *c, int64_t now_ms)
{
    int64_t halves = now_ms > c->at_ms ? (now_ms - c->at_ms) / THROTTLE_FADES_MS : 0;
    return halves >= 64 ? 0 : c->parts >> halves;
}

static struct count *find(struct counts *c, uint64_t key, int64_t now_ms, bool make)
{
    struct count *set = c->at + (mix(key) & (c->sets - 1)) * WAYS, *least = set;
    for (size_t i = 0; i < WAYS; i++) {
        if (set[i].key == key && set[i].parts)
            return &set[i];
        if (faded(&set[i], now_ms) < faded(least, now_ms))
            least = &set[i];
    }
    if (!make)
        return NULL;
    *least = (struct count){ .key = key, .at_ms = now_ms };
    return least;
}

struct bound {
    uint64_t free;
    int64_t max_ms;
};

static int64_t wait_of(struct counts *c, uint64_t key, struct bound b, int64_t now_ms)
{
    const struct count *x = find(c, key, now_ms, false);
    uint64_t fails = x ? faded(x, now_ms) / UNIT : 0;
    if (fails < b.free)
        return 0;
    uint64_t doublings = MIN(fails - b.free, UINT64_C(20));
    int64_t wait_ms = MIN((int64_t)FIRST_MS << doublings, b.max_ms);
    int64_t passed_ms = MAX(now_ms - x->at_ms, INT64_C(0));
    return MAX(wait_ms - passed_ms, INT64_C(0));
}

int64_t throttle_wait_ms(struct throttle *t, const struct attempt *a, int64_t now_ms)
{
    int64_t wait = wait_of(&t->pair, pair_of(a),
                           (struct bound){ THROTTLE_PAIR_FREE, THROTTLE_PAIR_MAX_MS }, now_ms);
    if (a->known)
        return wait;
    int64_t place = wait_of(&t->place, a->place,
                            (struct bound){ THROTTLE_PLACE_FREE, THROTTLE_PLACE_MAX_MS }, now_ms);
    int64_t user = wait_of(&t->user, a->user,
                           (struct bound){ THROTTLE_USER_FREE, THROTTLE_USER_MAX_MS }, now_ms);
    int64_t others = MAX(place, user);
    return MAX(wait, others);
}

static void count_one(struct counts *c, uint64_t key, int64_t now_ms)
{
    struct count *x = find(c, key, now_ms, true);
    x->parts = faded(x, now_ms) + UNIT;
    x->at_ms = now_ms;
}

void throttle_failed(struct throttle *t, const struct attempt *a, int64_t now_ms)
{
    count_one(&t->pair, pair_of(a), now_ms);
    if (a->known)
        return;
    count_one(&t->place, a->place, now_ms);
    count_one(&t->user, a->user, now_ms);
}

static void take_one(struct counts *c, uint64_t key)
{
    struct count *x = find(c, key, INT64_MIN, false);
    if (x)
        x->parts -= MIN(x->parts, (uint64_t)UNIT);
}

void throttle_undo(struct throttle *t, const struct attempt *a)
{
    take_one(&t->pair, pair_of(a));
    if (a->known)
        return;
    take_one(&t->place, a->place);
    take_one(&t->user, a->user);
}

void throttle_passed(struct throttle *t, const struct attempt *a)
{
    struct count *x = find(&t->pair, pair_of(a), INT64_MIN, false);
    if (x)
        x->parts = 0;
}
