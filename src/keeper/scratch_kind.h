/* scratch_kind - the ways to bound a folder, behind one table.
 *
 * Making an empty one, as measured on two cores with ext4: tmpfs 0.2 ms; loop 3 ms for 1 GiB and
 * 8 ms for 10 GiB, from a file system made ready for that size (once, 10 to 25 ms); plain under
 * 0.1 ms.  A project quota is three system calls more than plain.
 */
#ifndef NS_KEEPER_SCRATCH_KIND_H
#define NS_KEEPER_SCRATCH_KIND_H

#include "keeper/scratch.h"

#define SCRATCH_DIR_MAX 128

struct scratch_site {
    char dir[SCRATCH_DIR_MAX]; /* STATE/scratch: a folder a place, and .loop, .trash */
    char mkfs[512];            /* the program mkfs.ext4 */
    uint32_t next_project;
};

struct scratch_ops {
    /* Tries it for real on this machine; `path` is an empty folder for it. */
    int (*probe)(struct scratch_site *s, const char *path, struct err *e);
    /* `path` is an empty folder of root's; afterwards what is in it is bounded. */
    int (*make)(struct scratch_site *s, const char *path, uint64_t mib, struct err *e);
    bool costly; /* to make: worth keeping for the next task */
};

extern const struct scratch_ops scratch_ops[SCRATCH_KIND_COUNT];

/* Undoes what `make` did outside the folder; the folder and what is in it stay.  Any kind, any
 * state, idempotent. */
int scratch_unbind(const struct scratch_site *s, const char *path, struct err *e) MUST_USE;

bool scratch_is_mounted(const char *path);

uint64_t scratch_disk_bytes(const struct scratch_site *s, const char *path); /* of a loop file */

/* The project id of a folder, 0 when it has none. */
uint32_t scratch_project_of(const char *path);

#endif
