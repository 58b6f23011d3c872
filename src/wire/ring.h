/* ring - writes a job's output into the four log segments, never more than it was given room for.
 *
 * A write that fails never stops the job: its bytes are counted as lost, whole records only are left
 * in the file, and when writing works again a meta record says how much is missing.  The format is
 * wire/joblog's.
 */
#ifndef NS_WIRE_RING_H
#define NS_WIRE_RING_H

#include "wire/joblog.h"

struct ring {
    int fd[JOBLOG_SEGMENTS]; /* the caller's; all -1: nothing is kept */
    uint64_t segment_bytes;  /* at most, each */
    uint64_t number, size;   /* of the segment being written */
    bool marked;             /* its first record is written */
    uint64_t lost_bytes;     /* of output, ever */
    uint64_t untold_bytes;   /* of these, what no record tells yet */
    int why;                 /* errno of the last failure */
    struct buf out;
};

/* Goes on behind what they hold; begins when that is nothing. */
void ring_resume(struct ring *r, const int fd[static JOBLOG_SEGMENTS], uint64_t bytes,
                 int64_t t_us);

/* Empties all four. */
void ring_begin(struct ring *r, const int fd[static JOBLOG_SEGMENTS], uint64_t bytes, int64_t t_us);

void ring_write(struct ring *r, int64_t t_us, enum joblog_stream s, struct str chunk);
void ring_note(struct ring *r, int64_t t_us, const char *text); /* a meta record */
void ring_end(struct ring *r, int64_t t_us);                    /* the last word about losses */

#endif
