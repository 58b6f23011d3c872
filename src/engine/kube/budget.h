/* budget - PodDisruptionBudgets of a namespace: how many pods may go, and the query for the pods that they guard.
 *
 * Pure.  Suspending an owner passes by the server's own check, which only evictions meet: so we ask first.
 */
#ifndef NS_ENGINE_KUBE_BUDGET_H
#define NS_ENGINE_KUBE_BUDGET_H

#include "base/arena.h"
#include "base/buf.h"
#include "engine/kube/doc.h"

#define BUDGETS_MAX 500u        /* of a namespace */
#define BUDGET_QUERY_MAX 16384u /* bytes */

struct budget {
    const char *name;
    const char *query; /* a label selector, encoded; "": every pod */
    uint32_t allowed;  /* so many may go now */
};

/* Those that guard anything, at most BUDGETS_MAX; all texts lie in `a`.  More than that, or one whose selector cannot be
 * asked for, is an error: it is not known then what they guard. */
int budgets_read(const struct json *list, struct arena *a, struct budget **out, size_t *out_n,
                 struct err *e) MUST_USE;

#endif
