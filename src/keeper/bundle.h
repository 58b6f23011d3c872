/* bundle - a start request as an OCI runtime configuration: what crun reads.
 *
 * A pure function.  Everything a task may see or do is decided here and in seccomp.c: the host's
 * system read-only, its own /tmp, home and volumes without setuid and device files, no capability,
 * no new privileges, namespaces of its own, the nodes of its own GPUs.
 */
#ifndef NS_KEEPER_BUNDLE_H
#define NS_KEEPER_BUNDLE_H

#include "base/buf.h"
#include "keeper/request.h"
#include "keeper/rootfs.h"
#include "node/cdi.h"

#define BUNDLE_INIT "/.nightshift/init"
#define BUNDLE_INIT_FD 9      /* where the task has it as a sealed copy */
#define BUNDLE_MAX (4u << 20) /* of the text */

/* crun has to be told: it takes nothing recursive for a file. */
struct bundle_bind {
    const char *from;
    bool is_file;
};

/* What the machine's side gives to the task; paths are the keeper's. */
struct bundle_place {
    enum keeper_mode mode; /* root or rootless */
    const char *rootfs;
    const struct rootfs_plan *host;   /* NULL: the rootfs is an image's */
    const char *netns;                /* NULL: an empty network (root), the host's (rootless) */
    const char *scratch;              /* with tmp and var-tmp; NULL: a tmpfs of scratch_mib */
    const char *files;                /* a folder with resolv.conf, hosts and hostname */
    unsigned cover;                   /* bits of enum bundle_file: those that exist inside */
    const char *init;                 /* the program nightshift-init; NULL: it comes as a copy */
    const struct bundle_bind *volume; /* what is mounted at each volume's place, in order */
    const char *dev;                  /* where device nodes are: /dev */
    const char *const *node;          /* names below it that the task gets; ends with NULL */
    const struct cdi_edits *driver;   /* of its GPUs, for an image */
    uint64_t nofile_max, core_max;    /* our own hard limits: a task cannot have more */
};

enum bundle_file {
    BUNDLE_RESOLV,
    BUNDLE_HOSTS,
    BUNDLE_HOSTNAME,
    BUNDLE_FILE_COUNT
};
const char *bundle_file_name(enum bundle_file f); /* "resolv.conf", below /etc inside */

/* How a task begins: where, and what its user is told of that; NULL: there, and nothing. */
struct bundle_begin {
    const char *folder, *note;
};

/* Gives what nightshift-init is called with; the same in every mode.  Ends with NULL, in `a`. */
const char *const *bundle_argv(const struct start *s, const char *init,
                               const struct bundle_begin *b, struct arena *a);

/* The job's environment: what was asked for, and ours.  Ends with NULL, in `a`. */
const char *const *bundle_env(const struct start *s, struct arena *a);

const char *bundle_hostname(const char *task, char out[static 64]); /* job-17, job-17-2 */

/* As root all but /proc, /sys and /dev is mounted when the runtime comes: see layout.h. */
int bundle_write(const struct start *s, const struct bundle_place *p, const struct bundle_begin *b,
                 struct buf *out, struct err *e) MUST_USE;

#endif
