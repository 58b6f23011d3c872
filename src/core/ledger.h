/* ledger - who was entitled to GPUs, who had them, and who lent them to whom: sums by day.
 *
 * Everything is in thousandths of a GPU, and its integrals in that x ms: integers, exact between two
 * changes.  At every instant, of the GPUs of all machines (total):
 *
 *   total = got + idle + away      idle: free on machines that are up and open; away: on the others,
 *                                  as far as no job holds them still
 *   capacity = got + idle = sum of entitled          (where there is a tenant)
 *   borrowed = got above entitled; sum of lent = sum of borrowed, lent in proportion to what is left
 *
 * A tenant is entitled to its part of the capacity whether it wants it or not: guarantees first, scaled
 * down where they are more, the rest by weight; so down the tree, where a tenant's own users stand beside
 * the tenants below it.  Guarantees are in reference GPUs: here they are worth what the mean GPU of the
 * machines costs.  No decision looks at any of this.
 */
#ifndef NS_CORE_LEDGER_H
#define NS_CORE_LEDGER_H

#include "core/core.h"

struct job;
struct ledger;

#define LEDGER_DAYS_MAX 400 /* that are kept; of a longer stretch without an event, the latest */

struct ledger *ledger_new(void);
struct ledger *ledger_free(struct ledger *l);

/* What goes on since the last event went on until now_ms.  The first is asked before anything changes,
 * the second once it is known that it did: an event that is refused leaves no trace. */
void ledger_look(const struct core *c, int64_t now_ms);
void ledger_count(struct core *c, int64_t now_ms);

void ledger_shares(struct core *c); /* tenants, users or their weights and guarantees changed */
void ledger_weigh(struct core *c, uint32_t leaf, uint32_t was_milli);     /* a user's weight did */
void ledger_hold(struct core *c, const struct job *j, int64_t gpu_milli); /* negative: gives back */
void ledger_note(struct core *c, struct job *j);                          /* its state changed */
int ledger_apply(struct core *c, const struct ledger_row *row, int64_t now_ms, struct err *e)
    MUST_USE; /* of a journal's beginning */

#endif
