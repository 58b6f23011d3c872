/* layout - what is where in a task's root, in the mode root: a list for compose.h; a pure function.
 *
 * The host's system read-only or an image's own, files of ours below /etc, the GPU driver's, a /tmp of its
 * own, the home, the volumes.  /proc, /sys and /dev are the runtime's (bundle.h).
 */
#ifndef NS_KEEPER_LAYOUT_H
#define NS_KEEPER_LAYOUT_H

#include "keeper/bundle.h"
#include "keeper/compose.h"

struct layout_from {
    const char *state, *run; /* of this instance */
    const char *homes;       /* where homes of ours are */
    const char *workdir, *workdir_else;
};

/* Lives in `a`; the start must outlive it. */
struct compose *layout_make(const struct start *s, const struct bundle_place *p,
                            const struct layout_from *from, struct arena *a);

/* HOMES/<name>: one of ours, of somebody without an account here? */
bool layout_is_own_home(const char *home, const char *homes);

#endif
