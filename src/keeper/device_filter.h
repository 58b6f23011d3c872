/* device_filter - which devices a cgroup v2 group may open: a small program in the kernel.
 *
 * On v1 that is a list in a file.  It stands behind what a task can reach anyway: it has no way to
 * make a node, and its /dev holds only its own.
 */
#ifndef NS_KEEPER_DEVICE_FILTER_H
#define NS_KEEPER_DEVICE_FILTER_H

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

#define DEVICE_ANY_MINOR UINT32_MAX
#define DEVICE_RULES_MAX 256

struct device_rule { /* a character device that may be used; nodes of it may be made */
    uint32_t major, minor;
};

/* Is `root` a real cgroup v2, and may we give it programs? */
bool device_filter_works(const char *root);

/* From now on the group at `path` and all below it open these character devices and nothing else. */
int device_filter_set(const char *path, const struct device_rule *rule, size_t n, struct err *e)
    MUST_USE;

#endif
