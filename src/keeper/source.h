/* source - what of the machine a task may be given: judged by what was opened, never by a name.
 *
 * A name can be a link, and the folder behind it another a moment later.  So the source is opened first,
 * with the user's rights, and it is what was opened that must be allowed: by its real path, and by the
 * identity of the folders above it.  Async-signal-safe.
 *
 * Never given: the machine itself (/, /proc, /sys, /dev), the folders of this instance with what is above
 * and below them, and what the site denies.  A volume must lie in the job's own home or in a folder that
 * the site allows; a home must be no folder of the system.
 */
#ifndef NS_KEEPER_SOURCE_H
#define NS_KEEPER_SOURCE_H

#include <limits.h>

#include "keeper/actas.h"

enum source_kind {
    SOURCE_HOME,
    SOURCE_OWN_HOME, /* among ours: opened as ourselves, its user need not reach our folders */
    SOURCE_VOLUME,
    SOURCE_OURS /* ours or the system's, opened as ourselves */
};

enum source_fault {
    SOURCE_FINE,
    SOURCE_UNOPENED, /* errno says why; the others do not set it */
    SOURCE_NOT_A_FOLDER,
    SOURCE_MACHINERY,
    SOURCE_INSTANCE,
    SOURCE_DENIED,
    SOURCE_NOT_ALLOWED,
    SOURCE_NO_HOME
};

struct source_rules {
    const char *state, *run; /* of this instance */
    const char *const *allowed, *const
                                    *denied; /* absolute paths; each ends with NULL, or is NULL */
    struct actas who;
    char home[PATH_MAX]; /* the real path of the home, once that was opened; "" before */
};

struct source {
    int fd; /* the caller's */
    bool is_file;
    char real[PATH_MAX];
};

/* Not SOURCE_FINE: out->real says what it was, as far as that is known. */
enum source_fault source_open(struct source_rules *r, const char *from, enum source_kind k,
                              struct source *out) MUST_USE;

#endif
