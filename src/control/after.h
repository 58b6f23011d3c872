/* after - what a new job starts after: of the jobs that its user named, those that live still. */
#ifndef NS_CONTROL_AFTER_H
#define NS_CONTROL_AFTER_H

#include "control/control.h"
#include "spec/spec.h"

#define AFTER_LOOKS_MAX 1000000u /* jobs that one submit may make us look at */

struct afters {
    struct after *v; /* for the core; in the arena */
    uint32_t n;
};

/* Of one submit: whose jobs its caller may see (NULL: nobody's), where the lists live, and how many
 * jobs may still be looked at, from AFTER_LOOKS_MAX down. */
struct after_look {
    const struct store_scope *sees;
    struct arena *arena;
    uint32_t left;
};

/* What has ended is judged here, from the store: met, it is left out; one that can never be met is
 * refused, as is a job that the caller cannot see. */
int after_resolve(struct control *c, struct after_look *look, const struct spec *s,
                  struct afters *out, struct err *e) MUST_USE;

/* Ends what can never start because of a job that has just ended, with a sentence that says so. */
void after_end_never(struct control *c);

#endif
