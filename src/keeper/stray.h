/* stray - children that were given up: killed while they waited for a file server, and held by the kernel.
 *
 * They never became a program and never will.  When the kernel lets one go it is reaped, and its control
 * group removed.
 */
#ifndef NS_KEEPER_STRAY_H
#define NS_KEEPER_STRAY_H

#include <sys/types.h>

#include "keeper/cgroup.h"
#include "sys/loop.h"

struct strays;

struct strays *strays_new(struct loop *l);
struct strays *strays_free(
    struct strays *s); /* NULL ok; returns NULL; they are whoever's comes next */

void strays_groups(struct strays *s, struct cgroups *c);
void strays_add(struct strays *s, const char *task, pid_t pid,
                int pidfd); /* takes the descriptor */
size_t strays_n(const struct strays *s);

#endif
