/* journal - the list of events as text, one JSON object a line.
 *
 * The first line names the format and its version.  A later version may add kinds and keys; a
 * reader refuses what it does not know, by name, rather than guess.  The fields of each kind are a
 * table in journal.c, from which writing, reading and the reference are made.  Slots name nodes by
 * the order of their `node` lines.  After a `pass` line stand the `place` lines it decided:
 * replaying may apply them (restore) or make the pass again and compare (verify).
 */
#ifndef NS_JOURNAL_JOURNAL_H
#define NS_JOURNAL_JOURNAL_H

#include "base/arena.h"
#include "base/buf.h"
#include "core/event.h"

#define JOURNAL_VERSION 1
#define JOURNAL_LINE_MAX (1u << 20)

void journal_write_header(struct buf *out);
int journal_read_header(struct str line, struct err *e) MUST_USE;

void journal_write(const struct event *ev, struct buf *out); /* with its line feed */

/* Names and slots of the event live in `a`. */
int journal_read(struct str line, struct arena *a, struct event *out, struct err *e) MUST_USE;

/* The reference, printed from the table: one line a field, Markdown. */
void journal_print_reference(struct buf *out);

#endif
