/* hold - the machine's owner wants it: said on the machine, told in every report, kept over a restart.
 *
 * It stands until it is released or its time is over.  The agent freezes nothing for it: the control plane
 * takes the machine back as at the end of a window.  What it must not do meanwhile is let anything go on.
 */
#ifndef NS_AGENT_HOLD_H
#define NS_AGENT_HOLD_H

#include "wire/report.h"

/* What a file has of it; none when there is no file, an error when it is not one of ours. */
int hold_load(const char *path, struct report_hold *out, struct err *e) MUST_USE;
/* On the disk before it is told; a hold of since 0 removes the file. */
int hold_save(const char *path, const struct report_hold *h, struct err *e) MUST_USE;

/* A request on the control socket, one line:
 *
 *   hold FOR_MS REASON…     0: until it is released
 *   release
 *   show
 *
 * `h` is changed as it says; the answer is "ok …" or "error …".  1: something changed. */
int hold_request(struct str line, const char *by, int64_t now_ms, struct report_hold *h,
                 struct buf *answer);

#endif
