/* cdi - what a container needs so that a device works in it, as vendors write it down: the specs of
 * the Container Device Interface in /etc/cdi and /var/run/cdi, JSON or YAML.
 *
 * For a device name ("nvidia.com/gpu=0", "nvidia.com/gpu=GPU-…") it gives the device nodes, mounts,
 * variables, groups and hooks.  Hooks are only listed: nothing here runs anything.  Keys that we do
 * not know are skipped.  Paths are absolute and have no ".." in them, or the spec is refused.
 */
#ifndef NS_NODE_CDI_H
#define NS_NODE_CDI_H

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

#define CDI_TEXT_MAX (1u << 20)  /* bytes of one spec */
#define CDI_ITEMS_MAX 1024       /* in any list of a spec */
#define CDI_FILES_MAX 256        /* specs in one folder */
#define CDI_TOTAL_MAX (8u << 20) /* bytes of all specs */

#define CDI_UNSET (-1) /* of a number: as the host's own device has it */

struct cdi_node {
    const char *path, *host_path; /* in the container, on the host */
    const char *permissions;      /* "rwm" and parts of it */
    char type;                    /* 'c', 'b', 'p'; 0: as the host's */
    int64_t major, minor, mode, uid, gid;
};

struct cdi_mount {
    const char *host_path, *path, *type; /* type may be empty */
    const char *const *options;          /* ends with NULL */
};

struct cdi_hook {
    const char *name, *path;              /* "createContainer", the program */
    const char *const *args, *const *env; /* end with NULL */
};

struct cdi_edits {
    struct cdi_node *nodes;
    struct cdi_mount *mounts;
    struct cdi_hook *hooks;
    const char **env; /* "KEY=value" */
    uint32_t *gids;
    size_t n_nodes, n_mounts, n_hooks, n_env, n_gids;
};

struct cdi_device {
    const char *name; /* "0" */
    struct cdi_edits edits;
};

struct cdi_spec {
    const char *kind;        /* "nvidia.com/gpu" */
    struct cdi_edits common; /* for a container that has any of its devices */
    struct cdi_device *devices;
    size_t n_devices;
};

/* One spec; everything in *out lives in `a`. */
int cdi_parse(struct str text, bool yaml, struct arena *a, struct cdi_spec *out, struct err *e)
    MUST_USE;

struct cdi; /* all specs of this machine */

/* Reads the folders, a later one before an earlier one where both name a device; NULL, 0: the usual
 * two.  A folder that is not there is empty, and a spec that cannot be read is left out. */
struct cdi *cdi_open(const char *const *folders, size_t n);
struct cdi *cdi_close(struct cdi *c); /* NULL ok; returns NULL */
void cdi_close_p(struct cdi **c);
const struct err *cdi_problem(const struct cdi *c,
                              size_t i); /* what was left out; NULL past them */

bool cdi_has(const struct cdi *c, const char *name); /* "nvidia.com/gpu=0" */

/* All that the named devices need together, nothing twice.  Lives in `a`; borrows from `c`. */
int cdi_resolve(const struct cdi *c, const char *const *names, size_t n, struct arena *a,
                struct cdi_edits *out, struct err *e) MUST_USE;

#endif
