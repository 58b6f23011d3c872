/* sum - checksums of rows: written with the row, looked at when a store is opened or verified. */
#ifndef NS_STORE_SUM_H
#define NS_STORE_SUM_H

#include <sqlite3.h>

#include "base/err.h"

void sum_register(sqlite3 *db); /* ns_sum(…), of any values, for its statements */

/* ERR_INTERNAL names a row that is not as it was written.  whole: every row, else those that a start is made from. */
int sum_check(sqlite3 *db, const char *path, bool whole, struct err *e) MUST_USE;

#endif
