/* compose - the root of a task put together by its own child, before the container's runtime sees it.
 *
 * The runtime makes missing mount points itself, as root and wherever a link leads it.  So it gets none to
 * make: everything but /proc, /sys and /dev is mounted here.  First what is ours and the system's, while
 * nobody else can change the root; then the home and the volumes, outer ones first, each on a place that
 * was made canonical before (point.h) and from a source that was judged when it was open (source.h), both
 * held by descriptor, so that what a user moves meanwhile changes nothing.  Read-only, nosuid and nodev
 * hold for all that is mounted below a source too.  Async-signal-safe.
 */
#ifndef NS_KEEPER_COMPOSE_H
#define NS_KEEPER_COMPOSE_H

#include "keeper/point.h"
#include "keeper/source.h"

#define COMPOSE_MOUNTS_MAX 2048

enum compose_kind {
    COMPOSE_SYSTEM,  /* of the host, or ours */
    COMPOSE_SCRATCH, /* ours, for the task to write to */
    COMPOSE_TMPFS,   /* `from` is its options */
    COMPOSE_HOME,
    COMPOSE_OWN_HOME, /* among ours */
    COMPOSE_VOLUME
};

struct compose_mount {
    const char *from, *at;
    const char *instead; /* a home: where it is when `from` is not there; NULL: nowhere */
    enum compose_kind kind;
    bool read_only;
    char place[POINT_PATH_MAX]; /* filled in */
};

struct compose {
    const char *root; /* a folder: the skeleton, or an image's */
    struct compose_mount *mount;
    uint32_t n;
    struct source_rules rules;
    const char *homes;        /* where homes of ours are */
    const char *workdir;      /* inside; NULL: not looked at */
    const char *workdir_else; /* when that is not there; NULL: nothing else will do */
    bool is_image;            /* whoever made it may have put links where ours goes */
    bool has_hooks;           /* of a driver: run as root on its libraries */
};

enum compose_fault {
    COMPOSE_FINE,
    COMPOSE_ROOT,       /* errno: our own */
    COMPOSE_SOURCE,     /* see `source`; errno */
    COMPOSE_RESERVED,   /* its place is one of ours */
    COMPOSE_HOOKED,     /* its place is a driver's */
    COMPOSE_PLACE,      /* errno: it cannot be found or made */
    COMPOSE_ATTACH,     /* errno */
    COMPOSE_IMAGE_LINK, /* text: where */
    COMPOSE_WORKDIR     /* errno */
};

struct compose_trouble {
    enum compose_fault fault;
    enum source_fault source;
    int cause; /* errno */
    uint32_t index;
    char text[200]; /* a path, cut */
};

/* What the child is about to touch that may not answer; before each, for the parent to know. */
typedef void compose_busy_fn(void *ctx, uint32_t index);

/* 0: it is there; 1: it is, but for the workdir that has another; -1: *out says why not. */
int compose_make(struct compose *c, compose_busy_fn *busy, void *ctx, struct compose_trouble *out)
    MUST_USE;

bool compose_is_reserved(const char *place); /* nothing of a user's goes there; canonical */

#endif
