/* trail - what each task used while it ran: processors, memory, its own part of its GPUs.
 *
 * A trail has TRAIL_POINTS points at most, however long the task runs: when they are full, two become one and the
 * step doubles, from one second on.  TRAILS_MAX tasks have one; a new task takes the place of the one that was heard
 * of longest ago, and has none while all the others run.  On the disk it is one file of fixed size, written a trail
 * at a time, about once a minute: a crash costs that much.  A trail that was torn counts as none.  For history.c.
 */
#ifndef NS_HISTORY_TRAIL_H
#define NS_HISTORY_TRAIL_H

#include "history/history.h"

#define TRAIL_POINTS 512u
#define TRAILS_MAX 1024u

struct trails;

/* path NULL: in memory only.  A file that is not as expected is begun anew; without a disk there is none. */
struct trails *trails_open(const char *path);
struct trails *trails_close(struct trails *t); /* what is not on the disk is written; NULL ok */

/* A sample of a machine: all its tasks.  Those of one task come in the order of time. */
void trails_take(struct trails *t, const struct report_head *head, const struct report_sample *s);

/* Valid until the next sample. */
bool trails_find(const struct trails *t, struct history_task which, struct history_trail *out);

uint64_t trails_bytes(void); /* of the file */

#endif
