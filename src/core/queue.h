/* queue - the jobs that wait, in groups that rise and fall together.
 *
 * A group is the jobs of one user, one priority, one shape, one family and one stage (how long they
 * have run before), oldest first.  When its first job does not fit, none does, so a pass pays for
 * groups and shapes, not for jobs.  A group is *ready* unless its shape is known to have no room or it waits under the limit of a share; only ready
 * groups are worth trying, and the queue counts them, so a pass knows when to stop.
 */
#ifndef NS_CORE_QUEUE_H
#define NS_CORE_QUEUE_H

#include "core/allow.h"
#include "core/core.h"
#include "core/history.h"
#include "core/reason.h"
#include "core/shape.h"
#include "core/share.h"

/* What a job holds while it holds anything: one block, so that a waiting job stays small. */
struct held {
    struct amounts charged; /* what its limits were charged */
    int64_t cost_milli;
    int64_t since_ms;
    uint32_t gpu_milli; /* in all slots */
    uint32_t rank;      /* class, and worth below: as of the last look at the history */
    float worth;
    bool express; /* it has had little so far */
    bool overdue; /* it had waited too long; for as long as that it is left alone */
    bool guest;   /* in room that is kept for another: that one may always have it back */
    uint32_t at;  /* in queue.holder */
    uint32_t n;
    struct slot slot[];
};

struct job {
    uint64_t id; /* also the order of submission */
    int64_t submit_ms;
    int64_t since_ms;  /* its turn among others: from when on it might have run, see later.h */
    int64_t wait_ms;   /* since when it waits, or waited before it was placed: anew with a freeze */
    int64_t ran_ms;    /* before what it holds now */
    int64_t stated_ms; /* when its start was forecast, and what was said: see forecast.c */
    struct eta eta;
    int64_t limit_ms;  /* how long it may run; 0: for ever */
    struct held *held; /* NULL while it holds nothing */
    uint32_t leaf, shape;
    uint32_t family;            /* what work it is: see event_submit */
    uint32_t asks_milli;        /* GPUs, as the ledger counts it while it waits */
    uint32_t group, prev, next; /* while it waits; NONE otherwise */
    uint8_t state, priority;
    float ahead;           /* GPU thousandths before it, when that was forecast */
    uint16_t taken;        /* how often it was taken back */
    uint32_t thaw_cost_ms; /* what a freeze and a thaw cost it; 0: it cannot be taken back */
    bool awake : 1;        /* a frozen job that wants to go on */
    bool has_claim : 1;    /* room is kept free for it */
    bool later : 1;        /* it may not queue yet: see later.h */
    bool leaving : 1;      /* a pass has taken it back: it is being frozen */
    bool promised : 1;     /* its slots are its own as soon as they are free; it is in no group */
    bool is_stated : 1;    /* its start was forecast */
    bool restarts : 1;     /* a freeze loses its work: it runs again from the start */
    bool is_wanted : 1;    /* counted as waiting, and as taken back: see ledger.h */
    bool is_out : 1;
};

struct group {
    uint32_t leaf, shape, family;
    uint32_t same_next;                  /* the next with the same hash */
    uint32_t first, last, n;             /* jobs, oldest first */
    uint32_t blocked_on;                 /* the share whose limit it waits for, or NONE */
    uint8_t priority, stage;             /* stage: see history_bin */
    uint8_t why;                         /* enum reason, while blocked_on is somebody */
    bool narrow;                         /* and room for what it may have there would do as well */
    uint32_t leaf_at;                    /* in its user's list */
    uint32_t shape_prev, shape_next;     /* groups of the same shape */
    uint32_t blocked_prev, blocked_next; /* groups that wait for the same share */
};

struct queue {
    struct job *job;
    uint32_t jobs, job_cap, job_unused; /* unused jobs are chained by `next` */
    struct map job_by_id;
    uint32_t *holder; /* jobs that hold something, in no order: far fewer than all */
    uint32_t holders, holder_cap;
    struct group *group;
    uint32_t groups, group_cap, group_unused; /* unused groups are chained by shape_next */
    struct map group_by_hash;
    uint64_t waiting; /* jobs in groups */
    uint64_t ready;   /* groups that are worth trying */
    bool room_came;   /* a shape may fit again: every user may have a ready group */
};

void queue_init(struct queue *q);
void queue_free(struct queue *q);

uint32_t queue_new_job(struct queue *q, uint64_t id);
void queue_drop_job(struct queue *q, uint32_t job);
uint32_t queue_find(const struct queue *q, uint64_t id); /* NONE when unknown */

/* The job holds `held` from now on; or nothing any more, which frees it. */
void queue_hold(struct queue *q, uint32_t job, struct held *held);
void queue_let_go(struct queue *q, uint32_t job);

/* The job starts or stops waiting. */
void queue_add(struct queue *q, struct shapes *sh, struct shares *s, uint32_t job);
void queue_remove(struct queue *q, struct shapes *sh, struct shares *s, uint32_t job);

void queue_no_room(struct queue *q, struct shapes *sh,
                   uint32_t shape); /* until room is freed for it */
void queue_room_came(struct queue *q, struct shapes *sh, uint32_t shape); /* it may fit again */
/* It waits for this share; narrow: it may have a part of the models, and there was no room there. */
void queue_block(struct queue *q, struct shapes *sh, struct shares *s, uint32_t group,
                 struct refusal by, bool narrow);
void queue_wake_share(struct queue *q, struct shapes *sh, struct shares *s, uint32_t share);
void queue_wake_narrow(struct queue *q, struct shapes *sh, struct shares *s); /* room came */
void queue_wake_limit(struct queue *q, struct shapes *sh, struct shares *s,
                      uint32_t leaf); /* of leaf and above */
void queue_wake_all(struct queue *q, struct shapes *sh, struct shares *s);

/* Why the group waits, as the last pass found it. */
enum reason queue_why(const struct queue *q, const struct shapes *sh, uint32_t group);

/* The class of the group's first job, lifted by its age. */
uint32_t queue_rank(const struct user_group *g, const struct policy *p, int64_t now_ms);

#endif
