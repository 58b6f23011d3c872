/* world - generated clusters and the life in them, for properties: a seed gives the same world
 * everywhere. */
#ifndef NS_TESTS_LIB_WORLD_H
#define NS_TESTS_LIB_WORLD_H

#include "base/arena.h"
#include "base/rng.h"
#include "core/core.h"

#define WORLD_TENANTS 8

struct world {
    struct rng rng;
    struct rng device_rng; /* apart: a world with devices is otherwise the one without */
    struct arena arena;
    int64_t now_ms;
    uint64_t last_job;
    uint32_t nodes, tenants, users;
    uint64_t *live; /* jobs that were accepted and have not ended, as far as the world knows */
    size_t lives, live_cap;
    bool limits;   /* tenants have some */
    bool faults;   /* nodes go down and change, jobs are lost, people cancel and freeze */
    bool freezes;  /* jobs can be taken back */
    bool reserves; /* machines are reserved, and jobs name that */
    bool rules; /* tenants have limits by model, pools, an end, budgets; they move, come and go */
    int64_t period_ms[WORLD_TENANTS]; /* when the budget's period of each ends that was said last */
    bool changed;                     /* machines have */
    uint32_t pools;   /* of machines that are lent at times; 0: all may always work */
    uint32_t devices; /* kinds of them that some machines have and some jobs ask for; 0: none */
    uint32_t traits;  /* classes that some machines have and some jobs ask for; 0: none */
};

void world_init(struct world *w, uint64_t seed);
void world_free(struct world *w);

/* The events that build the world: models, tenants, nodes.  Lives in the world's arena. */
size_t world_build(struct world *w, struct event *out, size_t max);

/* One random happening; advances the clock. */
struct event world_event(struct world *w);

/* A valid submit by somebody. */
struct event world_submit(struct world *w);

/* After the event was accepted by the core, or the plan was made. */
void world_accepted(struct world *w, const struct event *ev);

/* Ends a job that can never start, as whoever drives the core has to; false: there is none. */
bool world_never(const struct world *w, const struct core *c, struct event *out);

#endif
