/* work - what a job does, as far as its spec tells: its program, and which jobs are the same work.
 *
 * Jobs that differ in numbers only (train-001 and train-002, the steps of a sweep, one image's
 * builds) are one family: how long some of them ran says how long the others will.
 */
#ifndef NS_SPEC_WORK_H
#define NS_SPEC_WORK_H

#include "spec/spec.h"

/* The program's name without its folder; of a shell line that of its first word. */
struct str work_program(const struct spec *s);

/* The family as a number, by name and image, or program where the image is the host's own system.  The
 * same on every machine and in every version, since journals keep it; never 0. */
uint32_t work_family(const struct spec *s);

#endif
