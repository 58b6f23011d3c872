/* driver - the GPU driver's own files, for tasks in images: what the machine's CDI specs name.
 *
 * With image: host the driver is there, as all else of the host.  An image has none, and one of
 * another version would not work: libraries, programs, more device nodes, groups and the hooks that
 * make the libraries known inside come from the specs that NVIDIA's toolkit wrote.
 * Simulated GPUs need nothing.
 */
#ifndef NS_KEEPER_DRIVER_H
#define NS_KEEPER_DRIVER_H

#include "keeper/env.h"
#include "keeper/request.h"
#include "node/cdi.h"

/* *out is empty when nothing is needed; it lives in `a` and borrows from *out_specs, which the caller
 * closes.  -1: the image would have no driver, and how to mend that. */
int driver_find(const struct env *env, const struct start *s, struct arena *a,
                struct cdi **out_specs, struct cdi_edits *out, struct err *e) MUST_USE;

/* The hooks that crun is told to run; ends with NULL.  Others would run inside, as the user, or when
 * nobody waits for them: those are not the driver's. */
extern const char *const driver_hooks[];

#endif
