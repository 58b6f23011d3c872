/* usage - what usage is summed by; and whose the machines' GPUs were, a row a day for each tenant and for
 * all machines.
 *
 * Such a row is replaced as a whole, so the same day may be written again with what it has come to.
 */
#ifndef NS_STORE_USAGE_H
#define NS_STORE_USAGE_H

#include "core/types.h"
#include "store/store.h"

/* What usage is summed by. */
#define STORE_USAGE_BYS(X)                                                                         \
    X(DAY, "day")                                                                                  \
    X(TENANT, "tenant")                                                                            \
    X(USER, "user")                                                                                \
    X(MODEL, "model")
enum store_usage_by {
#define X(id, name) USAGE_BY_##id,
    STORE_USAGE_BYS(X)
#undef X
    USAGE_BY_COUNT
};

void store_put_ledger(struct store_batch *b, const struct ledger_row *row);

int store_ledger_last_day(struct store *s, int64_t *out, struct err *e)
    MUST_USE; /* INT64_MIN: nothing was written yet */

/* Days from `from` up to `to`, without that: of each the machines, then the tenants in scope by name.
 * Names live for the call. */
struct store_days {
    int64_t from, to;
};
typedef void store_ledger_fn(void *ctx, const struct ledger_row *row);
int store_ledger(struct store *s, const struct store_scope *who, struct store_days days,
                 store_ledger_fn *fn, void *ctx, struct err *e) MUST_USE;

#endif
