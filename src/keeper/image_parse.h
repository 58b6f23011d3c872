/* image_parse - the texts inside an image's layout: index and manifest.  All from outside, all
 * bounded; what does not look right is an error.  (References and run settings are in image.h.) */
#ifndef NS_KEEPER_IMAGE_PARSE_H
#define NS_KEEPER_IMAGE_PARSE_H

#include "keeper/image.h"

#define IMAGE_DIGEST 65      /* 64 hex digits of a SHA-256 */
#define IMAGE_LAYERS_MAX 512 /* registries allow 127 */
#define IMAGE_JSON_MAX (4u << 20)

struct image_manifest {
    char config[IMAGE_DIGEST];
    char (*layer)[IMAGE_DIGEST]; /* in the arena */
    size_t n_layers;
    uint64_t layer_bytes; /* as they are stored, packed */
};

bool image_digest_parse(struct str s, char out[static IMAGE_DIGEST]); /* "sha256:…" */

/* The digest of the only image in an index. */
int image_index_parse(struct str json, char out_digest[static IMAGE_DIGEST], struct err *e)
    MUST_USE;
int image_manifest_parse(struct str json, struct arena *a, struct image_manifest *out,
                         struct err *e) MUST_USE;

/* The line of a helper program's output that says what went wrong, without its decoration. */
struct str image_complaint(struct str output);

#endif
