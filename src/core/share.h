/* share - who is next: tenants as a tree, users as leaves, each with what it may have, has, had.
 *
 * The key of a share is (past + present + job / 2) / weight, in reference GPUs: `past` is its
 * use averaged with the policy's half-life, `present` what it holds now, each as far as it is
 * above the guarantee; `job` what one of its jobs takes, as a mean.  Filling always the smallest
 * key is a weighted max-min share above the guarantees, corrected for the past; in steady
 * contention past and present both settle at the entitlement.  Without half a job small shares
 * would win: a share is chosen at its lowest, and one that is small next to its jobs is further
 * below its mean then.  Jobs are not divisible, so what is held can only be the entitlement
 * rounded to jobs; the rounding goes up or down as the past asks (share.c), which makes the mean
 * exact.  A share below its guarantee comes before all others.  Sums are integers; only the past
 * is a floating-point number.
 */
#ifndef NS_CORE_SHARE_H
#define NS_CORE_SHARE_H

#include "base/err.h"
#include "base/heap.h"
#include "base/map.h"
#include "core/event.h"
#include "core/rules.h"

/* What a pass compares of a user's groups, side by side: it looks through them often, and there are
 * more of them than a cache holds. */
struct user_group {
    uint64_t first_id; /* of the group's first job */
    int64_t first_wait_ms;
    uint32_t group;
    uint32_t shape; /* NONE while the group waits for a limit */
    uint32_t rank;  /* priority lifted by age; only during a pass */
    float worth;    /* see history.h; only during a pass */
    uint32_t family;
    uint8_t priority, stage;
};

struct user_groups {
    struct user_group *at;
    uint32_t *pos; /* place of each in the user's heap */
    uint64_t *key; /* rank and worth of each as one number: a heap compares little else */
    uint32_t n, cap;
};

struct share {
    uint32_t parent; /* NONE at the root */
    uint32_t depth;  /* root 0 */
    bool is_user;
    bool removed;        /* a tenant that is no more: its past is kept, in case it comes back */
    uint8_t closed;      /* nothing of it and below it starts: enum reason; 0: it may */
    bool nowhere;        /* at the last pass there was no machine in its pools */
    uint16_t zone;       /* the pools it may use: see cluster_zone; 0: every machine */
    struct rules *rules; /* of a tenant; NULL: it has none */
    char *name;
    uint32_t weight_milli;
    int64_t guarantee_milli;
    struct amounts limit;      /* of this share and all below it */
    struct amounts user_limit; /* of each user of this tenant */
    struct amounts used;       /* held now, by this share and all below it */
    int64_t cost_milli;        /* the same in reference GPUs */
    int64_t job_milli;         /* cost of one job, a mean over the latest */
    int64_t kept_milli;        /* cost of the jobs below it that nodes are kept for */
    uint32_t least_rank;       /* at a user: class and worth of what it runs, at least */
    float least_worth;
    uint64_t waiting; /* jobs below it that wait for a place */

    double past_cost_ms; /* decayed cost × time up to past_at_ms */
    int64_t past_at_ms;

    uint32_t blocked; /* first group that waits for room under this share's limit; see queue.h */
    struct user_groups groups; /* at a user: of waiting jobs */
    bool touched;              /* at a user: may have a ready group */

    /* Only during a pass: */
    struct heap ready; /* children (or, at a user, groups) that may have something to try */
    uint64_t take_failed_milli; /* at a user: nothing of this size could be made room for */
    bool opened;                /* at a user: its heap holds its ready groups */
    double past_milli;          /* of a share with waiting jobs, at the time of the pass */
    uint64_t level_weight;
    double level;  /* of its children that are rivals: mean past above the guarantee, by weight */
    bool is_rival; /* something of it waits, and nothing but the others keeps it from starting */
    double key;
    bool below_guarantee;
};

struct shares {
    struct share *at;
    uint32_t n, cap;
    uint32_t *pos;   /* place of each share in its parent's heap */
    struct map find; /* (parent, name) -> index; see share.c */
    int64_t half_life_ms;
    double past_weight; /* what the past counts next to the present */
    int64_t begin_ms;   /* when the first tenant came: there is no past before it */
    uint32_t ruled;     /* tenants that have rules */
    uint32_t closed;    /* that are closed */
};

#define SHARE_ROOT 0u

void shares_init(struct shares *s, int64_t half_life_ms);
void shares_free(struct shares *s);

uint32_t shares_tenant(const struct shares *s, struct str name); /* NONE: unknown or removed */
uint32_t shares_user(const struct shares *s, uint32_t tenant, struct str name);
uint32_t shares_add_user(struct shares *s, uint32_t tenant, struct str name, int64_t now_ms);

/* Is it the share, or below it? */
static inline bool share_is_below(const struct shares *s, uint32_t leaf, uint32_t share)
{
    while (leaf != NONE && leaf != share)
        leaf = s->at[leaf].parent;
    return leaf == share;
}

/* Makes or changes a tenant, but for its rules.  Refuses a parent that is unknown or below the tenant
 * itself.  With another parent, what it and those below it have and had goes with it. */
int shares_set_tenant(struct shares *s, const struct event_tenant *t, int64_t now_ms, struct err *e)
    MUST_USE;
/* Refuses one that has others below it; whether it has jobs is the caller's to know. */
int shares_remove_tenant(struct shares *s, uint32_t tenant, struct err *e) MUST_USE;

/* A job of `leaf` takes (sign +1) or gives back (-1) these amounts and this cost. */
void shares_charge(struct shares *s, uint32_t leaf, const struct amounts *a, int64_t cost_milli,
                   int sign, int64_t now_ms);

/* Room is kept for a job of `leaf` of this cost, or no longer (negative): counts as present. */
void shares_keep(struct shares *s, uint32_t leaf, int64_t cost_milli);

void shares_set_half_life(struct shares *s, int64_t half_life_ms, int64_t now_ms);

/* Would this much more pass the share's limit of that? */
static inline bool share_is_over(const struct share *s, enum resource which,
                                 const struct amounts *more)
{
    return s->limit.of[which] != NO_LIMIT && more->of[which] > 0 &&
           s->used.of[which] + more->of[which] > s->limit.of[which];
}

/* The first share from the leaf upwards whose limit `a` would pass, or NONE. */
uint32_t shares_over_limit(const struct shares *s, uint32_t leaf, const struct amounts *a,
                           enum resource *out_which);

/* The same for an empty cluster: could a job of this size ever run here? */
uint32_t shares_never_fits(const struct shares *s, uint32_t leaf, const struct amounts *a,
                           enum resource *out_which);

double share_past_milli(const struct shares *s, uint32_t share,
                        int64_t now_ms); /* reference GPUs × 1000 */
int64_t share_past_cost_ms(const struct shares *s, uint32_t share, int64_t now_ms); /* decayed */
void share_set_past(struct shares *s, uint32_t share, const struct event_past *p, int64_t now_ms);
void shares_set_levels(struct shares *s, int64_t now_ms); /* once a pass, before the keys */
void share_set_key(struct shares *s, uint32_t share);     /* of a share with waiting jobs */
/* Has it had no more than its siblings that wait, by weight?  After shares_set_levels. */
bool share_is_owed(const struct shares *s, uint32_t share);
/* What it has, and had, above its guarantee, with so much more; in reference GPUs × 1000. */
double share_above(const struct shares *s, uint32_t share, int64_t more_milli);
bool share_before(const void *shares, uint32_t a, uint32_t b); /* for the heap; a total order */

#endif
