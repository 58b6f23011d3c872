/* graft - what is open at one descriptor, mounted at another, in a mount namespace of our own.
 *
 * No name is looked up on the way, so nobody can put another thing in its place.  What is mounted below
 * comes along, with the same attributes.  Async-signal-safe.
 */
#ifndef NS_KEEPER_GRAFT_H
#define NS_KEEPER_GRAFT_H

#include "base/base.h"

/* The kernel's MOUNT_ATTR_*, newer than some C libraries that we are built with. */
#define GRAFT_RDONLY 0x1u
#define GRAFT_NOSUID 0x2u
#define GRAFT_NODEV 0x4u
#define GRAFT_NOEXEC 0x8u

int graft(int from, int to, unsigned attributes) MUST_USE; /* -1 with errno */

#endif
