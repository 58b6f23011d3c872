/* journal_walk - a journal line by line.  For journal_*.c only. */
#ifndef NS_SIMULATE_JOURNAL_WALK_H
#define NS_SIMULATE_JOURNAL_WALK_H

#include "core/core.h"
#include "simulate/journal_trace.h"

#define JOURNAL_BYTES_MAX (1u << 30)

/* Gets each event, whose names live until the next one; NULL: the journal begins anew here. */
typedef int (*journal_event_fn)(void *self, const struct event *ev, struct err *e);
int journal_walk(const char *file, struct str text, journal_event_fn fn, void *self, struct err *e)
    MUST_USE;

/* An event that does not fit the others names its field. */
int journal_tell(struct core *c, const struct event *ev, struct err *e) MUST_USE;

/* A trace's names are C strings. */
int event_check_names(const struct event *ev, struct err *e) MUST_USE;
/* What it points to moves into the arena. */
void event_keep(struct arena *a, struct event *ev);
const void *keep_bytes(struct arena *a, const void *p, size_t n, size_t size);

#endif
