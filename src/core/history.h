/* history - how long jobs have run, and what that says about those that run or wait now.
 *
 * Learnt online from what ran here, nothing else: how often jobs ended and how long they were at risk
 * of it, by how long they had run (bins that grow fourfold).  A job that still runs, or was frozen,
 * counts for the time it ran: it is known not to have ended earlier.  The old fades with each job
 * that ends.  That is counted of everybody's jobs, of those of one size, of one tenant's of that
 * size, and of a *family*: one user's jobs of that size that are the same work (see
 * event_submit).  Each leans on the one before it by how little it has seen itself: what has never
 * ended here is as its tenant's jobs are, a new tenant's as everybody's.
 *
 * The worth of a job is its Gittins index by size: the best rate, over all horizons, at which
 * running it on ends it.  Serving the highest worth first is what keeps the mean wait least when
 * only the distribution of run times is known.
 */
#ifndef NS_CORE_HISTORY_H
#define NS_CORE_HISTORY_H

#include "base/map.h"
#include "core/types.h"

#define HISTORY_BINS 11u
#define HISTORY_SIZES 8u /* by GPUs of the whole job: none or a part, 1, 2, 4, 8, 16, 32, more */
#define HISTORY_FAMILIES 4096u /* that are known at a time: the one unheard of the longest goes */
#define HISTORY_OF_A_USER 64u  /* of one user: whoever names each job anew crowds out nobody else */

/* Whose job, and what it is. */
struct history_of {
    uint32_t tenant, size;
    uint32_t user, family; /* family 0: it has none */
};

struct history_row {
    struct history_of of;
    double ended[HISTORY_BINS];      /* jobs that ended in the bin, faded */
    double exposed_ms[HISTORY_BINS]; /* time that jobs spent in the bin, faded the same way */
    double running_ms[HISTORY_BINS]; /* of those that run: counted anew with each derivation */
    double rate[HISTORY_BINS];       /* derived: of ending, each ms */
    double stays[HISTORY_BINS];      /* derived: part of those that enter the bin and leave it */
    double worth[HISTORY_BINS];      /* derived: the index at the bin's begin, each ms */
};

struct history {
    struct history_row all, size[HISTORY_SIZES];
    struct history_row *row; /* of one tenant and one size */
    uint32_t rows, row_cap;
    struct map row_by_key;
    struct history_row *family;
    uint64_t *heard; /* of each family: when it last had an end, in ends */
    uint32_t families, family_cap;
    uint64_t ends; /* of jobs in families */
    struct map family_by_key;
    double works, work_ms; /* jobs that ended and their GPU time, faded */
};

void history_init(struct history *h);
void history_free(struct history *h);
void history_copy(struct history *h, const struct history *from);

uint32_t history_size(const struct request *r); /* the class of a job by its GPUs */
uint32_t history_bin(int64_t ran_ms);           /* of a job that has run for so long */
int64_t history_bin_begin_ms(uint32_t bin);
double history_gpus_weight(
    const struct request *r); /* GPUs^1.5: what a large job's worth is less */

/* Such a job ran from one of its own times to another; `ended` there? */
void history_learn(struct history *h, struct history_of of, int64_t from_ms, int64_t to_ms,
                   bool ended);

/* What was known when a journal begins; tenant NONE: of all, size HISTORY_SIZES: of every size.
 * Families are said in the order in which they were heard of. */
void history_set(struct history *h, struct history_of of, uint32_t bin, double ended,
                 double exposed_ms);

/* The families from the one unheard of the longest on; to be freed. */
uint32_t *history_families_by_age(const struct history *h);

/* Rates and worths anew: begin, then all that runs, then done. */
void history_derive_begin(struct history *h);
void history_derive_running(struct history *h, struct history_of of, int64_t from_ms,
                            int64_t to_ms);
void history_derive_done(struct history *h);

/* The closest that is known of such jobs; until something is learnt. */
const struct history_row *history_row(const struct history *h, struct history_of of);

/* How long a job that has run for so long will run on, in this part of the cases (0 to 1). */
int64_t history_left_ms(const struct history_row *r, int64_t ran_ms, double part);

/* GPU time of a job that ended, whoever's; and the mean of them. */
void history_learn_work(struct history *h, double gpu_ms);
double history_mean_work_ms(const struct history *h);

#endif
