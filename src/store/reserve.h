/* reserve - room on the store's disk that is given up when the disk is full, so that what ends can be recorded.
 *
 * A file of blocks beside the store, `<path>.reserve`: a hundredth of the file system, at most 8 MiB.  It is made when
 * there is four times as much room, and made again when there is.
 */
#ifndef NS_STORE_RESERVE_H
#define NS_STORE_RESERVE_H

#include "base/base.h"

bool reserve_release(const char *path); /* true: there is more room now */
bool reserve_make(const char *path);    /* true: it is there */

#endif
