/* environ - what a task finds in its environment, besides what its user asked for. */
#ifndef NS_CONTROL_ENVIRON_H
#define NS_CONTROL_ENVIRON_H

#include "base/arena.h"
#include "engine/engine.h"

struct environ_of {
    struct task_id task;
    const struct spec *spec;
    struct str tenant, user, name;
    uint64_t array; /* id of the first job of its array, or 0 */
    uint32_t array_index;
    const struct slot *slots; /* of all replicas */
    uint32_t n_slots;
    uint32_t restarts; /* how often it was started before */
};

/* "KEY=value" strings, ending with NULL, in `a`.  What the user set wins: it is left out here. */
const char *const *environ_make(const struct environ_of *of, struct arena *a);

#endif
