#include "core/history.h"

#include "base/decay.h"

#define FADE 0.99           /* what is known of a tenant's jobs counts so much less with each end */
#define FADE_SHARED 0.998   /* the same of everybody's */
#define FADE_FAMILY 0.97    /* and of a family: the work changes under its name */
#define FAMILY_JOBS 2.0     /* runs that the tenant's jobs are worth to a family */
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
    free(h->family);
    free(h->heard);
    map_free(&h->family_by_key);
}

/* ---- rows ---- */

static uint64_t row_key(const struct history_of *of)
{
    return (uint64_t)of->tenant * HISTORY_SIZES + of->size;
}

/* As its parent until it is derived itself. */
static struct history_row row_below(const struct history_row *parent, struct history_of of)
{
    struct history_row r = { .of = of };
    memcpy(r.worth, parent->worth, sizeof r.worth);
    memcpy(r.rate, parent->rate, sizeof r.rate);
    memcpy(r.stays, parent->stays, sizeof r.stays);
    return r;
}

static struct history_row *tenant_row(struct history *h, struct history_of of)
{
    uint64_t key = row_key(&of), hit;
    if (map_get(&h->row_by_key, key, &hit))
        return &h->row[hit];
    vec_grow(h->row, h->rows, h->row_cap);
    of.user = of.family = 0;
    h->row[h->rows] = row_below(&h->size[of.size], of);
    map_set(&h->row_by_key, key, h->rows);
    return &h->row[h->rows++];
}

static const struct history_row *known_tenant_row(const struct history *h, struct history_of of)
{
    uint64_t hit;
    return map_get(&h->row_by_key, row_key(&of), &hit) ? &h->row[hit] : &h->size[of.size];
}

/* There are fewer users than 2^29: each takes more than 256 bytes. */
static uint64_t family_key(const struct history_of *of)
{
    return (uint64_t)of->user << 35 | (uint64_t)of->size << 32 | of->family;
}
_Static_assert(HISTORY_SIZES <= 8, "a family's key has bits for them");

static struct history_row *find_family(const struct history *h, struct history_of of)
{
    uint64_t hit;
    bool known = of.family && map_get(&h->family_by_key, family_key(&of), &hit);
    return known ? &h->family[hit] : NULL;
}

static void grow_families(struct history *h)
{
    uint32_t cap = h->family_cap;
    vec_grow(h->family, h->families, h->family_cap);
    if (cap != h->family_cap)
        h->heard = xrealloc(h->heard, h->family_cap, sizeof *h->heard);
}

/* A place for one more of this user: a new one, or that of the family unheard of the longest, of his
 * own when he has many. */
static uint32_t family_place(struct history *h, uint32_t user)
{
    uint32_t oldest = NONE, own = NONE, owned = 0;
    for (uint32_t i = 0; i < h->families; i++) {
        if (oldest == NONE || h->heard[i] < h->heard[oldest])
            oldest = i;
        if (h->family[i].of.user != user)
            continue;
        owned++;
        if (own == NONE || h->heard[i] < h->heard[own])
            own = i;
    }
    uint32_t at = owned >= HISTORY_OF_A_USER ? own : oldest;
    if (owned < HISTORY_OF_A_USER && h->families < HISTORY_FAMILIES) {
        grow_families(h);
        return h->families++;
    }
    map_remove(&h->family_by_key, family_key(&h->family[at].of));
    return at;
}

static struct history_row *family_row(struct history *h, struct history_of of)
{
    uint64_t hit;
    if (map_get(&h->family_by_key, family_key(&of), &hit))
        return &h->family[hit];
    uint32_t at = family_place(h, of.user);
    h->family[at] = row_below(known_tenant_row(h, of), of);
    h->heard[at] = ++h->ends;
    map_set(&h->family_by_key, family_key(&of), at);
    return &h->family[at];
}

void history_copy(struct history *h, const struct history *from)
{
    *h = (struct history){
        .all = from->all, .works = from->works, .work_ms = from->work_ms, .ends = from->ends
    };
    memcpy(h->size, from->size, sizeof h->size);
    for (uint32_t i = 0; i < from->rows; i++)
        *tenant_row(h, from->row[i].of) = from->row[i];
    for (uint32_t i = 0; i < from->families; i++) {
        grow_families(h);
        h->family[i] = from->family[i];
        h->heard[i] = from->heard[i];
        map_set(&h->family_by_key, family_key(&h->family[i].of), h->families++);
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

/* A family is known from the first of its jobs that ends. */
void history_learn(struct history *h, struct history_of of, int64_t from_ms, int64_t to_ms,
                   bool ended)
{
    struct history_row *family = ended && of.family ? family_row(h, of) : find_family(h, of);
    if (family)
        learn_row(family, FADE_FAMILY, from_ms, to_ms, ended);
    if (family && ended)
        h->heard[family - h->family] = ++h->ends;
    learn_row(tenant_row(h, of), FADE, from_ms, to_ms, ended);
    learn_row(&h->size[of.size], FADE_SHARED, from_ms, to_ms, ended);
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

void history_set(struct history *h, struct history_of of, uint32_t bin, double ended,
                 double exposed_ms)
{
    struct history_row *r = of.size == HISTORY_SIZES ? &h->all
                          : of.tenant == NONE        ? &h->size[of.size]
                          : of.family                ? family_row(h, of)
                                                     : tenant_row(h, of);
    r->ended[bin] = ended;
    r->exposed_ms[bin] = exposed_ms;
}

struct aged {
    uint64_t heard;
    uint32_t family;
};

static int by_age(const void *pa, const void *pb)
{
    const struct aged *a = pa, *b = pb;
    return a->heard < b->heard ? -1 : a->heard > b->heard;
}

uint32_t *history_families_by_age(const struct history *h)
{
    struct aged *aged = xcalloc(h->families + 1, sizeof *aged);
    uint32_t *out = xcalloc(h->families + 1, sizeof *out);
    for (uint32_t i = 0; i < h->families; i++)
        aged[i] = (struct aged){ h->heard[i], i };
    qsort(aged, h->families, sizeof *aged, by_age);
    for (uint32_t i = 0; i < h->families; i++)
        out[i] = aged[i].family;
    free(aged);
    return out;
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
    for (uint32_t i = 0; i < h->families; i++)
        clear_running(&h->family[i]);
}

void history_derive_running(struct history *h, struct history_of of, int64_t from_ms, int64_t to_ms)
{
    struct history_row *family = find_family(h, of);
    if (family)
        add_time(family->running_ms, from_ms, to_ms);
    add_time(tenant_row(h, of)->running_ms, from_ms, to_ms);
    add_time(h->size[of.size].running_ms, from_ms, to_ms);
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

/* The same of a family, which is one sort of work and not a mixture: FAMILY_JOBS that ran as the
 * parent's do are added to what was seen.  Counted by jobs that came to a bin, not by ends in it,
 * a few short runs outweigh a parent whose jobs are long. */
static void derive_family_rates(struct history_row *r, const struct history_row *known)
{
    for (uint32_t b = 0; b < HISTORY_BINS; b++) {
        double ends = MAX(FAMILY_JOBS * (1 - known->stays[b]), 1e-9);
        r->rate[b] =
            (r->ended[b] + ends) / (r->exposed_ms[b] + r->running_ms[b] + ends / known->rate[b]);
    }
}

static void derive_stays(struct history_row *r)
{
    for (uint32_t b = 0; b < HISTORY_BINS; b++) {
        double length_ms = (double)(bin_begin_ms[b + 1] - bin_begin_ms[b]);
        r->stays[b] = decay_pow2(-r->rate[b] * length_ms / LN2);
    }
}

/* The best rate of ending over all horizons that end with a bin. */
static void derive_worth(struct history_row *r)
{
    derive_stays(r);
    for (uint32_t from = 0; from < HISTORY_BINS; from++) {
        double lives = 1, ended = 0, time_ms = 0, best = 0;
        for (uint32_t b = from; b < HISTORY_BINS; b++) {
            time_ms += lives * (1 - r->stays[b]) / r->rate[b];
            ended += lives * (1 - r->stays[b]);
            lives *= r->stays[b];
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
        derive_rates(&h->row[i], h->size[h->row[i].of.size].rate);
        derive_worth(&h->row[i]);
    }
    for (uint32_t i = 0; i < h->families; i++) {
        derive_family_rates(&h->family[i], known_tenant_row(h, h->family[i].of));
        derive_worth(&h->family[i]);
    }
}

const struct history_row *history_row(const struct history *h, struct history_of of)
{
    const struct history_row *family = find_family(h, of);
    return family ? family : known_tenant_row(h, of);
}

/* Only the bin it is in may be entered in the middle. */
int64_t history_left_ms(const struct history_row *r, int64_t ran_ms, double part)
{
    double lives = 1, left_ms = 0;
    for (uint32_t b = history_bin(ran_ms); b < HISTORY_BINS; b++) {
        bool whole = ran_ms <= bin_begin_ms[b];
        double length_ms = (double)(bin_begin_ms[b + 1] - MAX(ran_ms, bin_begin_ms[b]));
        double then =
            lives * (whole ? r->stays[b] : decay_pow2(-r->rate[b] * MAX(length_ms, 0.0) / LN2));
        if (then <= 1 - part)
            return (int64_t)(left_ms + length_ms * (lives - (1 - part)) / (lives - then));
        left_ms += MAX(length_ms, 0.0);
        lives = then;
    }
    return (int64_t)left_ms;
}
