/* file - whole files: read within a bound, written so that a reader sees the old or the new one.
 *
 * What starts like gzip is unpacked on the way; the bound then holds for the unpacked bytes, so a
 * small file that unpacks to a huge one is refused.  Errors name the path and what to do.
 */
#ifndef NS_SYS_FILE_H
#define NS_SYS_FILE_H

#include "base/buf.h"

/* On success *out is replaced by the content (the caller frees it). */
int file_read(const char *path, size_t limit, struct buf *out, struct err *e) MUST_USE;

/* Through a temporary file beside it, flushed to the disk and renamed.  0644 less the umask. */
int file_write(const char *path, struct str data, struct err *e) MUST_USE;
int file_write_private(const char *path, struct str data, struct err *e) MUST_USE; /* 0600 */

void file_close_p(int *fd); /* for AUTO; -1 ok */

#define FILES_LEAST 256u /* a process that serves others does half of what it is asked with fewer */

/* As many open files as this process may have; fewer than FILES_LEAST are refused. */
int file_limit_raise(uint64_t *out_most, struct err *e) MUST_USE;

#endif
