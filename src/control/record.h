/* record - a living job as one line of JSON, for where the store is not: what makes it again when that is lost.
 *
 * Pure.  It has what was submitted and what cannot be found out otherwise; which machines a job has is told by the
 * engine.  A reader takes what a newer version added without looking at it.
 */
#ifndef NS_CONTROL_RECORD_H
#define NS_CONTROL_RECORD_H

#include "base/buf.h"
#include "spec/spec.h"

struct job_record {
    struct str tenant, user;
    uint32_t uid, account; /* who submitted it; as whom it runs, of an account of ours, or 0 */
    enum job_state state;  /* held, queued (also when it runs), freezing, frozen or stopping */
    bool awake;            /* of one that is or will be frozen: it goes on by itself */
    uint32_t run;          /* the last one; of a queued job that runs the one before it */
    uint64_t array;
    uint32_t array_index;
    int64_t submitted_ms, ran_ms;
    uint32_t fails;
    struct str message;
    struct after after[AFTER_MAX]; /* what it waits for still */
    uint32_t afters;
};

/* spec: canonical JSON, as the store keeps it. */
void record_write(const struct job_record *r, struct str spec, struct buf *out);
/* Texts live in `a`. */
int record_read(struct str text, struct arena *a, struct job_record *out, struct spec *out_spec,
                struct err *e) MUST_USE;

/* Of all jobs together: numbers up to this one may have been given out. */
void record_write_numbers(uint64_t up_to, struct buf *out);
int record_read_numbers(struct str text, uint64_t *out, struct err *e) MUST_USE;

#endif
