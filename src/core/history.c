#include "core/history.h"

#include "base/decay.h"

#define FADE 0.99           /* what is known of a tenant's jobs counts so much less with each end */
#define FADE_SHARED 0.998   /* the same of everybody's */
#define STRENGTH 4.0        /* ends that what is known of others is worth, a bin */
#define ENOUGH_ENDS 20.0    /* ends after which what has not ended counts in full */
#define FIRST_WORK_MS 3.6e6 /* GPU time of a job when nothing is known, as if STRENGTH were seen */
#define FIRST_RUN_MS 2.88e7 /* mean run time when nothing is known: then age says nothing, either */
#define TWO_GPUS_WEIGH 2.8284271247461903 /* 2^1.5; straight lines between the powers of two */
#define LN2 0.69314718055994530942

static const int64_t bin_begin_ms[HISTORY_BINS + 1] = {
    0,        15000,    60000,     240000,    960000,     3840000,
    15360000, 61440000, 245760000, 983040000, 3932160000, 15728640000,
};

void history_init(struct history *h)
{
    *h = (struct history){ 0 };
    history_derive_begin(h);
    history_derive_done(h);
}

void history_free(struct history *h)
{
    free(h->row);
    map_free(&h->row_by_key);
}

static uint32_t row_of(struct history *h, uint32_t tenant, uint32_t size)
{
    uint64_t key = (uint64_t)tenant * HISTORY_SIZES + size, hit;
    if (map_get(&h->row_by_key, key, &hit))
        return (uint32_t)hit;
    vec_grow(h->row, h->rows, h->row_cap);
    h->row[h->rows] = (struct history_row){ .tenant = tenant, .size = size };
    memcpy(h->row[h->rows].worth, h->size[size].worth, sizeof h->size[size].worth);
    memcpy(h->row[h->rows].rate, h->size[size].rate, sizeof h->size[size].rate);
    map_set(&h->row_by_key, key, h->rows);
    return h->rows++;
}

void history_copy(struct history *h, const struct history *from)
{
    *h = (struct history){ .all = from->all, .works = from->works, .work_ms = from->work_ms };
    memcpy(h->size, from->size, sizeof h->size);
    for (uint32_t i = 0; i < from->rows; i++) {
        uint32_t row = row_of(h, from->row[i].tenant, from->row[i].size);
        h->row[row] = from->row[i];
    }
}

uint32_t history_size(const struct request *r)
{
    uint64_t gpus = (uint64_t)r->gpus * r->replicas;
    uint32_t size = 0;
    for (uint64_t most = 1; gpus && size < HISTORY_SIZES - 1; most *= 2) {
        size++;
        if (gpus <= most)
            break;
    }
    return size;
}

uint32_t history_bin(int64_t ran_ms)
{
    uint32_t b = 0;
    while (b + 1 < HISTORY_BINS && ran_ms >= bin_begin_ms[b + 1])
        b++;
    return b;
}

int64_t history_bin_begin_ms(uint32_t bin)
{
    return bin_begin_ms[bin];
}

double history_gpus_weight(const struct request *r)
{
    double milli = r->gpus ? (double)r->gpus * GPU_MILLI : r->gpu_milli;
    double gpus = milli * r->replicas / GPU_MILLI, step = 1, weight = 1;
    if (gpus < 1)
        return MAX(gpus, 0.01);
    for (; gpus >= 2 * step; step *= 2)
        weight *= TWO_GPUS_WEIGH;
    return weight * (1 + (gpus / step - 1) * (TWO_GPUS_WEIGH - 1));
}

static void add_time(double ms[HISTORY_BINS], int64_t from_ms, int64_t to_ms)
{
    for (uint32_t b = history_bin(from_ms); b < HISTORY_BINS && from_ms < to_ms; b++) {
        int64_t until = b + 1 < HISTORY_BINS ? MIN(to_ms, bin_begin_ms[b + 1]) : to_ms;
        ms[b] += (double)(until - from_ms);
        from_ms = until;
    }
}

static void learn_row(struct history_row *r, double fade, int64_t from_ms, int64_t to_ms,
                      bool ended)
{
    add_time(r->exposed_ms, from_ms, to_ms);
    if (!ended)
        return;
    r->ended[history_bin(to_ms)] += 1;
    for (uint32_t b = 0; b < HISTORY_BINS; b++) {
        r->ended[b] *= fade;
        r->exposed_ms[b] *= fade;
    }
}

void history_learn(struct history *h, uint32_t tenant, uint32_t size, int64_t from_ms,
                   int64_t to_ms, bool ended)
{
    uint32_t row = row_of(h, tenant, size);
    learn_row(&h->row[row], FADE, from_ms, to_ms, ended);
    learn_row(&h->size[size], FADE_SHARED, from_ms, to_ms, ended);
    learn_row(&h->all, FADE_SHARED, from_ms, to_ms, ended);
}

void history_learn_work(struct history *h, double gpu_ms)
{
    h->works = h->works * FADE_SHARED + 1;
    h->work_ms = h->work_ms * FADE_SHARED + gpu_ms;
}

double history_mean_work_ms(const struct history *h)
{
    return (h->work_ms + STRENGTH * FIRST_WORK_MS) / (h->works + STRENGTH);
}

void history_set(struct history *h, uint32_t tenant, uint32_t size, uint32_t bin, double ended,
                 double exposed_ms)
{
    struct history_row *r = size == HISTORY_SIZES ? &h->all : &h->size[size];
    uint32_t row = tenant != NONE ? row_of(h, tenant, size) : NONE;
    if (row != NONE)
        r = &h->row[row];
    r->ended[bin] = ended;
    r->exposed_ms[bin] = exposed_ms;
}

/* ---- deriving ---- */

static void clear_running(struct history_row *r)
{
    memset(r->running_ms, 0, sizeof r->running_ms);
}

void history_derive_begin(struct history *h)
{
    clear_running(&h->all);
    for (uint32_t s = 0; s < HISTORY_SIZES; s++)
        clear_running(&h->size[s]);
    for (uint32_t i = 0; i < h->rows; i++)
        clear_running(&h->row[i]);
}

void history_derive_running(struct history *h, uint32_t tenant, uint32_t size, int64_t from_ms,
                            int64_t to_ms)
{
    uint32_t row = row_of(h, tenant, size);
    add_time(h->row[row].running_ms, from_ms, to_ms);
    add_time(h->size[size].running_ms, from_ms, to_ms);
    add_time(h->all.running_ms, from_ms, to_ms);
}

/* The rate of each bin, leaning on `known` as if that had been seen STRENGTH times.  That jobs have
 * not ended yet says little until some have. */
static void derive_rates(struct history_row *r, const double known[HISTORY_BINS])
{
    double ends = 0;
    for (uint32_t b = 0; b < HISTORY_BINS; b++)
        ends += r->ended[b];
    double sure = MIN(ends / ENOUGH_ENDS, 1.0);
    for (uint32_t b = 0; b < HISTORY_BINS; b++)
        r->rate[b] = (r->ended[b] + STRENGTH) /
                     (sure * (r->exposed_ms[b] + r->running_ms[b]) + STRENGTH / known[b]);
}

/* The best rate of ending over all horizons that end with a bin. */
static void derive_worth(struct history_row *r)
{
    for (uint32_t from = 0; from < HISTORY_BINS; from++) {
        double lives = 1, ended = 0, time_ms = 0, best = 0;
        for (uint32_t b = from; b < HISTORY_BINS; b++) {
            double length_ms = (double)(bin_begin_ms[b + 1] - bin_begin_ms[b]);
            double stays = decay_pow2(-r->rate[b] * length_ms / LN2);
            time_ms += lives * (1 - stays) / r->rate[b];
            ended += lives * (1 - stays);
            lives *= stays;
            best = MAX(best, ended / time_ms);
        }
        r->worth[from] = best;
    }
}

void history_derive_done(struct history *h)
{
    double nothing[HISTORY_BINS];
    for (uint32_t b = 0; b < HISTORY_BINS; b++)
        nothing[b] = 1 / FIRST_RUN_MS;
    derive_rates(&h->all, nothing);
    derive_worth(&h->all);
    for (uint32_t s = 0; s < HISTORY_SIZES; s++) {
        derive_rates(&h->size[s], h->all.rate);
        derive_worth(&h->size[s]);
    }
    for (uint32_t i = 0; i < h->rows; i++) {
        derive_rates(&h->row[i], h->size[h->row[i].size].rate);
        derive_worth(&h->row[i]);
    }
}

const struct history_row *history_row(const struct history *h, uint32_t tenant, uint32_t size)
{
    uint64_t hit;
    bool known = map_get(&h->row_by_key, (uint64_t)tenant * HISTORY_SIZES + size, &hit);
    return known ? &h->row[hit] : &h->size[size];
}

int64_t history_left_ms(const struct history *h, uint32_t tenant, uint32_t size, int64_t ran_ms,
                        double part)
{
    const struct history_row *r = history_row(h, tenant, size);
    double lives = 1, left_ms = 0;
    for (uint32_t b = history_bin(ran_ms); b < HISTORY_BINS; b++) {
        double length_ms = (double)(bin_begin_ms[b + 1] - MAX(ran_ms, bin_begin_ms[b]));
        double then = lives * decay_pow2(-r->rate[b] * MAX(length_ms, 0.0) / LN2);
        if (then <= 1 - part)
            return (int64_t)(left_ms + length_ms * (lives - (1 - part)) / (lives - then));
        left_ms += MAX(length_ms, 0.0);
        lives = then;
    }
    return (int64_t)left_ms;
}

double history_worth(const struct history *h, uint32_t tenant, uint32_t size, uint32_t bin)
{
    return history_row(h, tenant, size)->worth[bin];
}
