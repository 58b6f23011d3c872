/* saved - what is kept of jobs of ours beside the store, for when that is lost: STATE/jobs.
 *
 *   N         a job that runs, or has run and goes on: its run, its places, and what makes it again
 *   numbers   no larger number of a job was given out
 *
 * A copy is written before the keeper is asked to start its tasks, and goes before the keeper forgets them: so what
 * the keeper runs can be taken up by a store that knows nothing of it, and nothing is run twice.  Files are not flushed
 * to the disk: when the machine goes down, so do the tasks.  One that cannot be read is told and left alone.
 */
#ifndef NS_ENGINE_LOCAL_SAVED_H
#define NS_ENGINE_LOCAL_SAVED_H

#include "engine/engine.h"
#include "sys/clock.h"
#include "sys/log.h"

struct saved;

struct saved_config {
    const char *state; /* copied */
    struct log *log;   /* may be NULL */
    struct clock clock;
    engine_sink_fn *sink;
    void *ctx;
};
/* Makes the folder when it is first needed. */
struct saved *saved_new(const struct saved_config *config);
struct saved *saved_free(struct saved *c); /* NULL ok; returns NULL */

void saved_begin(struct saved *c, const struct engine_start *s); /* its tasks are about to start */
void saved_keep(struct saved *c, uint64_t job);                  /* the verb */

/* Numbers first: before anybody can be given one. */
void saved_tell_numbers(struct saved *c);
/* The jobs, in order, those that are not told yet or were left; once the machine is known. */
void saved_tell(struct saved *c);

/* A file's text: pure, for the two above.  Strings of *out live in `a`. */
struct saved_job {
    uint64_t job;
    uint32_t run, replicas;
    int64_t made_ms;
    struct str node;
    const struct slot *slot; /* of each replica */
    struct str record;
};
void saved_write(const struct saved_job *c, struct buf *out);
int saved_read(struct str text, struct arena *a, struct saved_job *out, struct err *e) MUST_USE;

#endif
