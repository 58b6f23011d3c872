/* place - what a task finds on the machine: control group, scratch, root, files, devices, bundle.
 *
 * Made just before its process, with what image and network have given.  Where the machine lacks a
 * part the mode says so (env.h); in plain mode there is only a control group, if that.
 */
#ifndef NS_KEEPER_PLACE_H
#define NS_KEEPER_PLACE_H

#include "keeper/life.h"

int place_make(struct task *t, struct err *e) MUST_USE; /* fills in t->spawn's root and t->begin */

/* Where a path of the task lies on the machine, in `a`; NULL when it is nothing of the machine's.
 * -1: the task will not have it. */
int place_outside(const struct start *s, const struct rootfs_plan *host, const char *path,
                  struct arena *a, const char **out, struct err *e) MUST_USE;

#endif
