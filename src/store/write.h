/* write - the writer thread's side: takes batches, commits them in groups, hands them back.
 *
 * It sees the batches it was given and its own connection, nothing else.  A batch comes back when it
 * is durable, or not durable when the thread is told to end while the disk refuses; before that, each
 * try that failed is reported by a refusal.
 */
#ifndef NS_STORE_WRITE_H
#define NS_STORE_WRITE_H

#include "store/batch.h"

#define GROUP_ROWS_MAX 4096u /* of several batches in one transaction; one batch is never split */
#define RETRY_FIRST_MS 10u
#define RETRY_LAST_MS 1000u

struct writer;

/* Takes db, in which the tables are up to date. */
struct writer *writer_new(sqlite3 *db, const char *path, struct err *e);
/* Moves the write-ahead log into the file, as far as the disk lets it. */
struct writer *writer_free(struct writer *w); /* NULL ok; returns NULL */

void writer_run(void *writer, struct worker *w); /* a worker_run_fn */

/* A transaction that the disk did not take; its batches are kept and tried again. */
struct refusal {
    struct parcel parcel;
    struct err why;
};

#endif
