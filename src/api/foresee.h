/* foresee - when a job would start, before it is submitted; and what that shares with its neighbours. */
#ifndef NS_API_FORESEE_H
#define NS_API_FORESEE_H

#include "api/state.h"

void foreseeings_free(struct api *a); /* those who wait are answered without it */

/* jobs.c: the body of a submit */
int jobs_read_submit(struct call *c, struct control_submit *out, bool *out_batch, struct err *e)
    MUST_USE;

/* why.c: what the core says of a job that waits; x->n is 0 for others */
void put_explanation(struct json_out *w, struct core *core, const struct store_scope *scope,
                     uint64_t id, const struct explanation *x, int64_t now_ms);

#endif
