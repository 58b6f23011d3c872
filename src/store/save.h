/* save - a copy of a store at one instant, and putting it back.  Each works on files, in a process of its own. */
#ifndef NS_STORE_SAVE_H
#define NS_STORE_SAVE_H

#include "store/store.h"

/* Also while a daemon has it: what was committed before now is in the copy, nothing else is.  `to` is replaced only when
 * the copy is whole, on the disk and verified. */
int store_backup(const char *path, const char *to, struct err *e) MUST_USE;
/* Refused while a daemon has it, and when `from` is not whole; what was there is kept as *out_old: "" when there was
 * nothing. */
int store_restore(const char *from, const char *path, char out_old[static 4200], struct err *e)
    MUST_USE;

/* To read only, also while a daemon has it; every page and every checksum is looked at.  ERR_CONFLICT: of an older
 * format, whose pages are sound; a daemon that opens it brings it up to date. */
struct store *store_open_verified(const char *path, struct err *e);

#endif
