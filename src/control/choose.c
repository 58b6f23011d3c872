#include "control/choose.h"

#include "core/types.h"

/* What a set of machines can add up to.  Of the way to each sum only the last machine's size is kept: sums are
 * reached size by size, so what was reached before is never changed. */
struct sums {
    uint8_t *last;  /* 0: not reached */
    uint32_t *used; /* of the size that is being added */
    uint64_t n;
};

static void sums_free(struct sums *s)
{
    free(s->last);
    free(s->used);
}

static void add_size(struct sums *s, uint32_t size, uint32_t count)
{
    memset(s->used, 0, s->n * sizeof *s->used);
    for (uint64_t sum = size; sum < s->n; sum++) {
        uint64_t from = sum - size;
        if (s->last[sum] || (from && !s->last[from]) || s->used[from] == count)
            continue;
        s->last[sum] = (uint8_t)size;
        s->used[sum] = s->used[from] + 1;
    }
}

static bool is_open(const struct choice *m, bool busy)
{
    return m->busy == busy && !m->chosen;
}

static void choose_one(struct choice *at, size_t n, bool busy, uint32_t size)
{
    size_t i = 0;
    while (i < n && (!is_open(&at[i], busy) || at[i].gpus != size))
        i++;
    if (i == n)
        abort(); /* no sum uses more than there are */
    at[i].chosen = true;
}

/* The fewest GPUs that are enough; they are: `want` is at most what these machines have. */
static uint64_t choose_among(struct choice *at, size_t n, bool busy, uint64_t want)
{
    uint32_t count[GPUS_PER_NODE_MAX + 1] = { 0 };
    uint64_t end = want + GPUS_PER_NODE_MAX, sum = want;
    AUTO(sums_free)
    struct sums s = { .last = xcalloc(end, 1), .used = xcalloc(end, sizeof(uint32_t)), .n = end };
    for (size_t i = 0; i < n; i++)
        count[at[i].gpus] += is_open(&at[i], busy);
    for (uint32_t size = GPUS_PER_NODE_MAX; size > 0; size--)
        if (count[size])
            add_size(&s, size, count[size]);
    while (!s.last[sum])
        sum++;
    for (uint64_t left = sum; left; left -= s.last[left])
        choose_one(at, n, busy, s.last[left]);
    return sum;
}

uint64_t choose_machines(struct choice *at, size_t n, uint64_t want_gpus)
{
    uint64_t free_gpus = 0, busy_gpus = 0;
    for (size_t i = 0; i < n; i++) {
        at[i].chosen = false;
        *(at[i].busy ? &busy_gpus : &free_gpus) += at[i].gpus;
    }
    if (want_gpus == 0 || free_gpus + busy_gpus < want_gpus)
        return 0;
    if (free_gpus >= want_gpus)
        return choose_among(at, n, false, want_gpus);
    for (size_t i = 0; i < n; i++)
        at[i].chosen = !at[i].busy;
    return free_gpus + choose_among(at, n, true, want_gpus - free_gpus);
}
