/* image_fetch - one image on its way here: skopeo copies it, umoci unpacks it, then it appears.
 *
 * The steps run as child processes, one after the other, within one time limit and one bound on
 * the bytes they may write.  Stopped or killed at any moment, a fetch leaves only *.part names.
 */
#ifndef NS_KEEPER_IMAGE_FETCH_H
#define NS_KEEPER_IMAGE_FETCH_H

#include "keeper/image_disk.h"
#include "keeper/tool.h"

struct image_fetch;

struct image_tools {
    struct loop *loop;
    const struct image_disk *disk;
    char skopeo[TOOL_PATH_MAX], umoci[TOOL_PATH_MAX];
    const char *const *umoci_files; /* what it needs to run */
    char authfile[256];             /* "" for none */
    uint64_t max_bytes, timeout_ms;
    uint32_t uid[2];        /* who fetches: from anywhere, from `registries`; 0: root */
    const char *registries; /* that may be in local networks, commas between; NULL: none */
};

struct image_fetch_calls {
    void (*progress)(void *ctx, const char *text, uint64_t done, uint64_t total);
    void (*done)(void *ctx, const char *digest, const struct err *e); /* digest NULL: failed */
    void *ctx;
};

/* `source` is the file or folder of a local reference, which the fetch closes, or -1; it is read with the
 * rights of `user`.  `number` is one no other fetch of this store has. */
struct image_fetch_what {
    const struct image_ref *ref;
    const struct engine_user *user;
    int source;
    unsigned number;
};

/* done is called once, on the loop; the fetch is gone then. */
struct image_fetch *image_fetch_begin(const struct image_tools *t,
                                      const struct image_fetch_what *what,
                                      const struct image_fetch_calls *calls, struct err *e);
struct image_fetch *image_fetch_stop(struct image_fetch *f); /* done is not called; NULL ok */

#endif
