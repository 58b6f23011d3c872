/* later - jobs that are known but may not queue yet: their time has not come, or jobs that they wait
 * for have not ended.
 *
 * Such a job is QUEUED or HELD like any other and is in no group, so a pass does not see it.  When
 * nothing keeps it any more it joins the queue, and waits from then on.  What it waits for is a
 * span of ids, one job or the tasks of an array: spans that are alike are one `watch`, which counts
 * those of its jobs that live, so an end costs what it sets free and not what waits.
 * Only what is still to come is kept here: a job that ended before is the caller's to judge.
 */
#ifndef NS_CORE_LATER_H
#define NS_CORE_LATER_H

#include "base/heap.h"
#include "base/map.h"
#include "core/event.h"

struct later {
    uint64_t job; /* its id */
    int64_t begin_ms;
    uint32_t links, open; /* what it waits for; how many are not met */
    bool never;           /* it can never start: see core_never */
    struct after cause;   /* then: what cannot be met */
    uint64_t cause_job;   /* and because of which job */
};

/* A span of jobs that somebody waits for. */
struct watch {
    uint64_t first;
    uint32_t n, alive;
    uint32_t links, last; /* in the order they came: set free in it, each joins the queue's end */
    uint32_t picky;       /* links to which it matters how the next job ends, at most */
    uint32_t same;        /* the next watch with this `first`, or the next unused one */
};

/* One job waits for one span. */
struct link {
    uint32_t later, watch; /* watch NONE: it is met */
    uint32_t prev, next;   /* of the same watch */
    uint32_t also;         /* the next of the same job, or the next unused one */
    uint8_t when;
};

/* A living job is in this span. */
struct member {
    uint32_t watch, next;
};

struct laters {
    struct later *at;
    uint32_t n, cap, unused;
    uint32_t *pos; /* in one of the heaps, at most */
    struct heap due, never;
    struct map by_job;
    struct watch *watch;
    uint32_t watches, watch_cap, watch_unused;
    struct map watch_by_first;
    struct link *link;
    uint32_t link_n, link_cap, link_unused;
    struct member *member;
    uint32_t members, member_cap, member_unused;
    struct map member_by_job;
};

struct core;
void laters_init(struct laters *l);
void laters_free(struct laters *l);

int later_check(const struct core *c, const struct event_submit *s, struct err *e) MUST_USE;
/* Sets job->later when something keeps it; t_ms is the event's own time: `begin` is about the clock
 * that people see, also when that was set back. */
void later_submit(struct core *c, uint32_t job, const struct event_submit *s, int64_t t_ms);
void later_due(struct core *c, int64_t t_ms);  /* those whose time has come join the queue */
void later_drop(struct core *c, uint32_t job); /* it ends while it waits here */
void later_ended(struct core *c, uint64_t id, bool ok, int64_t now_ms);

const struct later *later_of(const struct core *c, uint64_t id);   /* NULL: nothing keeps it */
uint32_t later_alive(const struct core *c, const struct after *a); /* of one that is open */
bool later_is_early(const struct core *c, const struct later *l);  /* its time has not come */
/* What it waits for still; returns how many were written. */
uint32_t later_open(const struct core *c, const struct later *l, struct after out[AFTER_MAX]);
int later_audit(const struct core *c, struct err *e) MUST_USE;

#endif
