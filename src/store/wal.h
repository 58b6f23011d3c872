/* wal - is SQLite's log beside the store whole?
 *
 * SQLite takes it up to the first frame that is not as it was written, and drops the rest without a word: after a crash that is a
 * transaction nobody was told of.  Where more than that lies behind such a frame, it was committed, and a start would lose it.
 */
#ifndef NS_STORE_WAL_H
#define NS_STORE_WAL_H

#include <stdbool.h>

#include "base/err.h"

/* Before SQLite opens it.  same_boot: the machine has not gone down since it was written, so nothing of it was torn. */
int wal_check(const char *path, bool same_boot, struct err *e) MUST_USE;

#endif
