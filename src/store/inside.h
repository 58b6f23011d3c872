/* inside - struct store, for the files of this folder only. */
#ifndef NS_STORE_INSIDE_H
#define NS_STORE_INSIDE_H

#include "store/batch.h"
#include "store/db.h"
#include "store/write.h"

struct store {
    char *path;
    int lock; /* descriptor; -1 */

    /* reading */
    sqlite3 *db;
    struct statements st;
    unsigned snapshots; /* nested */
    struct err damage;  /* the first that was met */

    /* writing: the thread has writer, the loop has what comes after */
    struct writer *writer;
    struct worker *worker;
    struct store_batch *batches; /* open or not durable yet */
    size_t pending;
    bool failing, on_reserve, gave_up; /* gave_up: the last flush left something */
    struct err why;
    struct store_stats stats;
    uint64_t last_job, last_event, journal_lines; /* also uncommitted */
};

#endif
