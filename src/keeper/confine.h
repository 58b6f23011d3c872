/* confine - a program that reads what strangers made, shut in: whatever it does, it can do in one folder only.
 *
 * It sees a root of its own with nothing in it but itself, files that it needs, a folder to read and one
 * to write to; no process, network, socket or keyring but its own.  It is uid 0, because files get any
 * owner, with the capabilities over files and no others, and can get none; programs and devices that it leaves in
 * the folder do not work there.  When we die it is killed, at whatever moment.
 * Decision 0043 has what was chosen and why.
 */
#ifndef NS_KEEPER_CONFINE_H
#define NS_KEEPER_CONFINE_H

#include <sys/types.h>

#include "base/err.h"

struct confine_folder {
    const char *from, *at; /* an absolute path here, and what it is there */
};

struct confine {
    const char *const *files; /* where they are here, read-only; ends with NULL */
    struct confine_folder read, write;
    const char *cover;       /* a folder of ours around the latter: the new root is made over it */
    uint64_t max_file_bytes; /* of each file that it writes */
};

struct confine_program {
    const char *const *argv; /* ends with NULL; argv[0] is a path, and there the same */
    const char *const *env;  /* ends with NULL */
    int fd[3];               /* its stdin, stdout, stderr, above 2; they stay the caller's */
};

/* What keeps it from beginning stands on its stderr, and it ends with CONFINE_FAILED. */
#define CONFINE_FAILED 125

/* The descriptor is readable once it has ended; reaping it is the caller's. */
int confine_start(const struct confine *c, const struct confine_program *p, pid_t *out_pid,
                  int *out_pidfd, struct err *e) MUST_USE;

#endif
