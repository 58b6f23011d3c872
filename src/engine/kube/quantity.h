/* quantity - amounts as Kubernetes writes them: 100m, 1.5, 2Gi, 1e3, 128974848.
 *
 * All become thousandths.  What is finer is rounded away from zero, as Kubernetes does, and what is
 * larger than an int64_t holds becomes its largest: an amount is never less than what was asked.
 */
#ifndef NS_ENGINE_KUBE_QUANTITY_H
#define NS_ENGINE_KUBE_QUANTITY_H

#include "base/json.h"

int quantity_parse(struct str s, int64_t *out_milli, struct err *e) MUST_USE;
int quantity_read(const struct json *v, int64_t *out_milli, struct err *e)
    MUST_USE; /* or a number */

int64_t quantity_add(int64_t a_milli, int64_t b_milli); /* saturates */

/* Nothing below zero: that is 0. */
uint64_t quantity_units(int64_t milli);     /* rounded up */
uint64_t quantity_mib_asked(int64_t milli); /* of bytes; rounded up */
uint64_t quantity_mib_there(int64_t milli); /* of bytes; rounded down */

#endif
