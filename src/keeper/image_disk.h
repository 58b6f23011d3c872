/* image_disk - how images lie under STATE/images (see image.h), and what of it may go.
 *
 * rootfs/<digest>/ holds root/, config.json, manifest.json and `used`, which has the size in bytes
 * as its text and the last use as its time.  Names that end in .part are unfinished.  What is not
 * wanted any more is moved to trash/, at once, and deleted from there by a child.
 */
#ifndef NS_KEEPER_IMAGE_DISK_H
#define NS_KEEPER_IMAGE_DISK_H

#include "keeper/image_parse.h"

#define IMAGE_PATH_MAX 320

#define IMAGE_VIEW                                                                                 \
    "/run/nightshift-images" /* where those who fetch see it: our own may lie in a closed home */

struct image_disk {
    uint32_t gid; /* of those who fetch; 0: root does it itself */
    char dir[128];
};

/* Makes the folders and throws away what is unfinished: nobody may be at work on it. */
int image_disk_open(const struct image_disk *d, struct err *e) MUST_USE;
/* What was fetched into this folder of blobs is root's from now on, whoever's rights it was fetched with. */
void image_disk_own(const char *blobs);
void image_disk_throw(const struct image_disk *d, const char *path);

/* "<dir>/<folder>/<name><tail>" */
const char *image_disk_path(const struct image_disk *d, const char *folder, const char *name,
                            const char *tail, char out[static IMAGE_PATH_MAX]);

bool image_disk_has(const struct image_disk *d, const char *digest);
void image_disk_touch(const struct image_disk *d, const char *digest); /* it was used now */
int image_disk_load(const struct image_disk *d, const char *digest, struct arena *a,
                    struct image *out, struct err *e) MUST_USE;

/* What a reference meant when it was last fetched; `stamp` tells one state of a file from the next. */
bool image_disk_lookup(const struct image_disk *d, struct str ref, const char *stamp,
                       char out_digest[static IMAGE_DIGEST]);
int image_disk_remember(const struct image_disk *d, struct str ref, const char *stamp,
                        const char *digest, struct err *e) MUST_USE;

uint64_t image_disk_bytes(const char *path); /* as its `used` says */

/* Throws away what is least recently used beyond `keep_bytes`, except what is mounted or was used
 * within grace_ms.  How many, and what is left. */
unsigned image_disk_prune(const struct image_disk *d, uint64_t keep_bytes, uint64_t grace_ms,
                          uint64_t *out_left);

#endif
