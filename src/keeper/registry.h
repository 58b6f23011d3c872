/* registry - the tasks a keeper knows, by name and as a list, and those that wait for their turn. */
#ifndef NS_KEEPER_REGISTRY_H
#define NS_KEEPER_REGISTRY_H

#include "base/map.h"
#include "keeper/task.h"

#define REGISTRY_MAX 10000

struct registry {
    struct task **all; /* in no order */
    size_t n, cap;
    struct map by_name;
    struct task **waiting; /* a ring of REGISTRY_MAX; NULL where one has gone */
    size_t first, n_waiting;
};

struct task *registry_find(const struct registry *r, const char *name); /* NULL: unknown */
bool registry_full(const struct registry *r);
void registry_add(struct registry *r, struct task *t);
void registry_remove(struct registry *r, struct task *t); /* from the waiting too; frees nothing */
void registry_clear(struct registry *r);                  /* frees the tasks */

void registry_wait(struct registry *r, struct task *t);
struct task *registry_next(struct registry *r); /* the first that waits, taken off; NULL: none */

#endif
