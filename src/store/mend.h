/* mend - what of a damaged store can be put right from itself, exactly.
 *
 * A row in which one byte is another (a bit that fell over) has one change that makes its checksum right again: that is what it
 * was.  Indexes and counts are made anew from the rows, when these are whole.  What cannot be put right is left as it is, for the
 * checks that follow to tell.
 */
#ifndef NS_STORE_MEND_H
#define NS_STORE_MEND_H

#include <sqlite3.h>

#include "sys/log.h"

/* log: may be NULL.  Of a store of today's format; all: not only what a start is made from.  false: not all rows are whole now. */
bool mend_rows(sqlite3 *db, const char *path, bool all, struct log *log);
/* Pages were found damaged: true when it was indexes, and they are sound again. */
bool mend_indexes(sqlite3 *db, const char *path, struct log *log);
void mend_counts(sqlite3 *db, const char *path, struct log *log);

#endif
