/* ledger - whose the machines' GPUs were, a row a day for each tenant and for all machines.
 *
 * A row is replaced as a whole, so the same day may be written again with what it has come to since.
 */
#ifndef NS_STORE_LEDGER_H
#define NS_STORE_LEDGER_H

#include "core/event.h"
#include "store/store.h"

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
