/* filewatch - tells when files in a folder are written to (inotify). */
#ifndef NS_SYS_FILEWATCH_H
#define NS_SYS_FILEWATCH_H

#include "sys/loop.h"

struct filewatch;
struct filewatch_one;

struct filewatch *filewatch_new(struct loop *l, struct err *e);
struct filewatch *filewatch_free(struct filewatch *f); /* NULL ok; returns NULL */

/* fn runs on the loop, once for any number of changes.  A folder may be watched several times. */
struct filewatch_one *filewatch_add(struct filewatch *f, const char *dir, loop_fn *fn, void *ctx,
                                    struct err *e);
struct filewatch_one *filewatch_remove(struct filewatch_one *o); /* NULL ok; returns NULL */

#endif
