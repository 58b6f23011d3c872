/* own - a replay under the core while it goes on.  For replay_own.c and own_told.c only. */
#ifndef NS_SIMULATE_OWN_H
#define NS_SIMULATE_OWN_H

#include "base/heap.h"
#include "core/core.h"
#include "journal/journal.h"
#include "simulate/told.h"

enum phase {
    WAITS, /* holds nothing: not told yet, queued, held or frozen */
    BEGINS,
    RUNS,
    STOPS,
    FREEZES,
    OVER
};

struct life {
    uint64_t number; /* the core's, in the order of submits: ids have to grow with time; 0: none */
    enum phase phase;
    struct trace_mark due;    /* when the phase ends by itself */
    uint32_t starts, freezes; /* so far */
    int64_t left_ms;          /* of work, and of what freezing cost, when it begins next */
    int64_t since_ms, end_ms; /* begin of the stay, and its end if nothing happens */
};

/* Where a job was placed. */
struct stay {
    const struct slot *slots;
    uint32_t n;
};

struct own {
    struct core *core;
    struct arena arena;
    struct told told;
    struct heap due; /* jobs whose phase ends by itself */
    uint32_t *pos;
    struct life *life;   /* jobs of the part, then those that never ran */
    double *lent;        /* of each, the GPUs that it holds in each window of the trace */
    uint32_t *of_number; /* the core's number of a job, to its life */
    uint64_t numbers;
    uint32_t *node_at; /* the journal's number of a node, to the core's; NONE: it is not here */
    uint32_t nodes_known, node_cap, nodes_told;
    const struct part *p;
    struct outcome *out;
    const struct replay_options *options;
    struct buf *journal;
    struct replay_meter *meter;
    uint32_t next_pass;      /* of the journal */
    int64_t now_ms, idle_ms; /* idle_ms: since when nothing but the core's own wishes is to come */
    bool wanted;             /* something happened since the last pass */
};

/* NULL: it never ran, the journal only says when it came and went. */
static inline const struct trace_job *own_job(const struct own *o, uint32_t i)
{
    return i < o->p->jobs ? &o->p->t->job[o->p->job[i]] : NULL;
}

int own_tell(struct own *o, const struct event *ev, struct err *e) MUST_USE;
int own_job_event(struct own *o, uint32_t i, enum job_event what, struct err *e) MUST_USE;
int own_begin(struct own *o, uint32_t i, const struct stay *stay, struct err *e) MUST_USE;
int own_freeze(struct own *o, uint32_t i, struct err *e) MUST_USE;
void own_set_due(struct own *o, uint32_t i, enum phase phase, int64_t due_ms);
void own_release(struct own *o, uint32_t i);

/* own_told.c: what comes from outside. */
int own_telling(struct own *o, const struct telling *t, struct err *e) MUST_USE;

#endif
