/* allow - what the tenants above a job let it have now: limits, limits by GPU model, the end of their
 * time, budgets.
 *
 * A limit by model never refuses a job that may run on another model: the request is narrowed to those
 * that have air.  Where a gang lands is not known before, so it counts whole against each limit that
 * it may touch; wherever it lands then, and on whatever mixture, no limit is passed.
 */
#ifndef NS_CORE_ALLOW_H
#define NS_CORE_ALLOW_H

#include "core/cluster.h"
#include "core/reason.h"
#include "core/shape.h"

struct core;
struct job;
struct held;

/* Who is in the way; when a request was narrowed, who makes it narrow. */
struct refusal {
    uint32_t share; /* NONE: nobody */
    enum reason why;
};

/* Is one of its tenants closed: its time has ended, or its budget is spent? */
bool core_closed(const struct core *c, uint32_t leaf, struct refusal *out);

/* What a job of this user may ask for now: `r`, or *narrowed to the models that have air; NULL: it may
 * not start. */
const struct request *core_allowed(const struct core *c, uint32_t leaf, const struct request *r,
                                   struct request *narrowed, struct refusal *out);
const struct request *core_job_allowed(const struct core *c, const struct job *j,
                                       struct request *narrowed); /* the same of a job */

/* Could it start in these slots now, as far as its tenants go? */
bool core_may_have(const struct core *c, const struct job *j, const struct slot *s, uint32_t n);

/* Jobs that are taken to be gone already. */
struct gone {
    const uint32_t *job;
    uint32_t n;
};

/* The models that no limit keeps it from, as bits; *out: the highest share that keeps it from one. */
uint64_t core_open_models(const struct core *c, uint32_t leaf, const struct request *r,
                          struct gone gone, uint32_t *out);
/* Does this limit keep it from models? */
bool core_cap_is_full(const struct core *c, uint32_t share, uint32_t cap, const struct request *r,
                      struct gone gone);
uint64_t request_models(const struct core *c, const struct request *r); /* all that it may take */

/* When the first of its tenants that is closed opens again: INT64_MIN: none is closed, INT64_MAX: it
 * does not. */
int64_t core_opens_ms(const struct core *c, uint32_t leaf);

/* Could a job of this size ever run in the tenant?  Only limits by model and pools are asked. */
int core_check_rules(const struct core *c, uint32_t tenant, const struct request *r, struct err *e)
    MUST_USE;

/* What a zone is, in words: "the machines of pool 'a', no pool only". */
const char *core_zone_words(const struct core *c, uint16_t zone, size_t cap, char *out);

/* Its first tenant from the user upwards whose pools are named, as they were said. */
uint32_t core_zone_owner(const struct core *c, uint32_t leaf);

#endif
