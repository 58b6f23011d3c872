/* exporter - figures of machines and GPUs in OpenMetrics text.
 *
 * For whoever is signed in; names of jobs, people and tenants only to those who see the tenant.
 */
#ifndef NS_API_EXPORTER_H
#define NS_API_EXPORTER_H

#include "api/state.h"

int put_machines(struct call *c, struct buf *b, struct err *e) MUST_USE;

#endif
