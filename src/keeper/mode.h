/* mode - with what power this keeper can run: root, rootless or plain (wire/keeper.h).
 *
 * root: uid 0 with crun; everything.  rootless: another account with crun and user namespaces; its
 * own tasks only, contained, without networks of their own.  plain: neither; its own tasks only, as
 * ordinary processes that nothing contains.
 */
#ifndef NS_KEEPER_MODE_H
#define NS_KEEPER_MODE_H

#include "base/err.h"
#include "wire/keeper.h"

#define MODE_PATH_MAX 512

/* wanted: "auto" or the name of a mode.  crun: a path, or NULL to look for it; out_crun is "" in
 * plain mode. */
int mode_choose(const char *wanted, const char *crun, enum keeper_mode *out,
                char out_crun[static MODE_PATH_MAX], struct err *e) MUST_USE;

const char *mode_note(enum keeper_mode m); /* what people should know about it; NULL: nothing */

#endif
