#include "base/heap.h"

#include "base/rng.h"
#include "tests/lib/test.h"

#define ITEMS 200u

struct world {
    uint32_t key[ITEMS], pos[ITEMS];
    struct heap h;
};

/* A total order: equal keys go by number. */
static bool before(const void *ctx, uint32_t a, uint32_t b)
{
    const uint32_t *key = ctx;
    return key[a] != key[b] ? key[a] < key[b] : a < b;
}

static void world_init(struct world *w)
{
    *w = (struct world){ .h = { .pos = w->pos, .before = before, .ctx = w->key } };
    for (uint32_t i = 0; i < ITEMS; i++)
        w->pos[i] = HEAP_OUT;
}

static uint32_t naive_top(const struct world *w)
{
    uint32_t best = HEAP_OUT;
    for (uint32_t i = 0; i < ITEMS; i++)
        if (w->pos[i] != HEAP_OUT && (best == HEAP_OUT || before(w->key, i, best)))
            best = i;
    return best;
}

static void random_step(struct world *w, struct rng *r)
{
    uint32_t item = rng_below(r, ITEMS);
    bool in = w->pos[item] != HEAP_OUT;
    switch (rng_below(r, 6)) {
    case 0: heap_remove(&w->h, item); break;
    case 1:
        if (w->h.n)
            heap_pop(&w->h);
        break;
    case 2:
    case 3:
        w->key[item] = rng_below(r, 50);
        heap_moved(&w->h, item);
        break;
    default:
        if (!in) {
            w->key[item] = rng_below(r, 50);
            heap_push(&w->h, item);
        }
    }
}

static void the_top_is_the_first(void)
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct world w;
        struct rng r = { seed };
        world_init(&w);
        for (int step = 0; step < 1000; step++) {
            random_step(&w, &r);
            uint32_t n = 0;
            for (uint32_t i = 0; i < ITEMS; i++)
                n += w.pos[i] != HEAP_OUT;
            CHECK_AT(seed, n == w.h.n);
            CHECK_AT(seed, n == 0 || heap_top(&w.h) == naive_top(&w));
        }
        while (w.h.n) {
            uint32_t want = naive_top(&w);
            CHECK_AT(seed, heap_pop(&w.h) == want && w.pos[want] == HEAP_OUT);
        }
        heap_free(&w.h);
    }
}

static void positions_are_true(void)
{
    struct world w;
    struct rng r = { 5 };
    world_init(&w);
    for (int step = 0; step < 2000; step++) {
        random_step(&w, &r);
        for (uint32_t i = 0; i < w.h.n; i++)
            CHECK(w.pos[w.h.item[i]] == i);
    }
    heap_clear(&w.h);
    for (uint32_t i = 0; i < ITEMS; i++)
        CHECK(w.pos[i] == HEAP_OUT);
    heap_push(&w.h, 3);
    CHECK(heap_top(&w.h) == 3 && w.h.n == 1);
    heap_free(&w.h);
}

static void absent_items_are_ignored(void)
{
    struct world w;
    world_init(&w);
    heap_remove(&w.h, 4);
    heap_moved(&w.h, 4);
    CHECK(w.h.n == 0 && w.pos[4] == HEAP_OUT);
    heap_free(&w.h);
}

static void a_renamed_item_keeps_its_place(void)
{
    struct world w;
    world_init(&w);
    for (uint32_t i = 0; i < 10; i++) {
        w.key[i] = i;
        heap_push(&w.h, i);
    }
    w.key[50] = w.key[4];
    heap_rename(&w.h, 4, 50);
    heap_rename(&w.h, 100, 101); /* not in: nothing to move */
    CHECK(w.pos[4] == HEAP_OUT && w.h.item[w.pos[50]] == 50 && w.pos[101] == HEAP_OUT);
    for (uint32_t i = 0; i < 10; i++)
        CHECK(heap_pop(&w.h) == (i == 4 ? 50 : i));
    heap_free(&w.h);
}

static const struct test tests[] = {
    { "the top is always the first of all, and pops come in order", the_top_is_the_first },
    { "each item knows its position, and clearing forgets it", positions_are_true },
    { "moving or removing what is not in does nothing", absent_items_are_ignored },
    { "a renamed item keeps its place", a_renamed_item_keeps_its_place },
};
TEST_CASES(tests)
