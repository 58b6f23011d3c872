/* image - container images: fetched and unpacked once, mounted for each task.
 *
 * References: docker://python:3.11, plain python:3.11 (the same), oci:/folder[:tag],
 * oci-archive:/file[:tag], docker-archive:/file[:tag].  Local ones are opened with the rights of
 * the user who asks, each time, so nobody gets root to read a file for him.  A registry's tag is
 * asked for once and then answered from what is here; one by digest can never change.
 *
 * Everything lies under STATE/images, for root only: blobs/ (what registries gave; those images share layers),
 * rootfs/<digest>/{root,config.json,…} (unpacked), refs/ (which digest a reference means), and
 * layout/, tmp/ and trash/ for what is on its way in or out.  A rootfs appears by rename when it is
 * whole; what a killed keeper left half done, image_open throws away.  Requests for one image at a
 * time share one fetch.  skopeo fetches and umoci unpacks, as children, the latter shut in (confine.h);
 * umoci 0.4 knows no layers packed with zstd.
 */
#ifndef NS_KEEPER_IMAGE_H
#define NS_KEEPER_IMAGE_H

#include "base/arena.h"
#include "base/buf.h"
#include "engine/engine.h"
#include "sys/log.h"
#include "sys/loop.h"

struct image_store;
struct image_want; /* somebody who waits for an image */

struct image_config {
    struct loop *loop;
    struct log *log; /* NULL ok */
    const char *dir; /* STATE/images */

    /* Zero and NULL mean the default. */
    uint64_t max_bytes;     /* 64 GiB: of one image, fetched or unpacked */
    uint64_t keep_bytes;    /* 200 GiB: what image_prune leaves; beyond it nothing is fetched */
    uint64_t grace_ms;      /* 600,000: image_prune spares what was used since */
    uint64_t timeout_ms;    /* 3,600,000: for one image */
    uint32_t fetcher[2];    /* accounts that fetch (net_rules.h); 0: root does it */
    const char *registries; /* that may be in local networks or on this machine, commas between */
    const char *authfile;   /* registry passwords, as `skopeo login` writes them; none */
};

/* What an image says about how to be run; all bounded, all from outside. */
struct image_run {
    const char *const *env;        /* "KEY=value", ends with NULL */
    const char *const *entrypoint; /* these two end with NULL and may be empty */
    const char *const *cmd;
    const char *workdir; /* absolute, or "" */
};

struct image {
    const char *digest; /* 64 hex digits: names it to image_mount */
    const char *rootfs; /* STATE/images/rootfs/<digest>/root: mount it, never write to it */
    struct image_run run;
};

typedef void image_progress_fn(void *ctx, struct str text, uint64_t done, uint64_t total);
typedef void image_done_fn(void *ctx, const struct image *img, const struct err *e);

/* Which of skopeo and umoci are missing is an error with a hint; then tasks with images are
 * refused. */
struct image_store *image_open(const struct image_config *c, struct err *e);
struct image_store *image_close(struct image_store *s); /* NULL ok; stops fetches, no callbacks */
void image_close_p(struct image_store **s);

/* done is called once, from the loop (never from within the call), with img NULL when it failed;
 * img is borrowed for that call.  progress may be NULL.  The want is gone once done was called. */
struct image_want *image_rootfs(struct image_store *s, struct str image,
                                const struct engine_user *user, image_progress_fn *progress,
                                image_done_fn *done, void *ctx);
void image_cancel(
    struct image_want *w); /* done is not called; the last one to go stops the fetch */

/* An overlay at `target` (made if absent) of the image's rootfs and folders below `scratch`, which
 * take what the task writes.  No setuid bit and no device of the image counts there. */
int image_mount(struct image_store *s, const char *digest, const char *scratch, const char *target,
                struct err *e) MUST_USE;
int image_unmount(const char *target, struct err *e) MUST_USE; /* idempotent */

/* Removes the least recently used beyond keep_bytes, never one that is mounted.  Also done when the store is opened,
 * before each fetch and after it. */
void image_prune(struct image_store *s);

/* The parsers, for tests and fuzzers. */
#define IMAGE_KINDS(X)                                                                             \
    X(DOCKER, "docker", "//")                                                                      \
    X(OCI, "oci", "")                                                                              \
    X(OCI_ARCHIVE, "oci-archive", "")                                                              \
    X(DOCKER_ARCHIVE, "docker-archive", "")
enum image_kind {
#define X(id, name, lead) IMAGE_##id,
    IMAGE_KINDS(X)
#undef X
    IMAGE_KIND_COUNT
};

struct image_ref {
    enum image_kind kind;
    char registry[256]; /* docker: docker.io when the reference names none */
    char name[512];     /* docker: "library/python"; else the absolute path */
    char tag[256];      /* "3.11", or "sha256:…" (pinned); "" for files that have none */
    bool pinned;
};
int image_ref_parse(struct str text, struct image_ref *out, struct err *e) MUST_USE;
void image_ref_format(const struct image_ref *r, struct buf *out); /* in full: parses to the same */

int image_run_parse(struct str json, struct arena *a, struct image_run *out, struct err *e)
    MUST_USE;

#endif
